BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE events (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at FLOAT NOT NULL, 
	kind VARCHAR(80) NOT NULL, 
	node VARCHAR(255), 
	job BIGINT, 
	body TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,1700000003.0,'deep.reserved',NULL,NULL,'{"at": 1700000003.0, "kind": "deep.reserved", "text": "deep check d900: waiting -> reserved: nodes of it are free, and it is its turn", "level": "info", "node": null, "job": null, "case": null, "data": []}');
INSERT INTO "events" VALUES(2,1.70000000519999790193e+09,'deep.running',NULL,NULL,'{"at": 1700000005.199998, "kind": "deep.running", "text": "deep check d900: reserved -> running: its job was started", "level": "info", "node": null, "job": null, "case": null, "data": []}');
CREATE TABLE journal (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(40) NOT NULL, 
	body TEXT NOT NULL, 
	why TEXT NOT NULL, 
	asked_at FLOAT NOT NULL, 
	outcome_at FLOAT, 
	error TEXT NOT NULL
);
INSERT INTO "journal" VALUES(1,'reserve:d900-0','ReserveNodes','{"type": "ReserveNodes", "key": "reserve:d900-0", "why": {"rule": "deep.reserve", "text": "deep check d900 (asked) needs its nodes for itself", "evidence": []}, "name": "steward-deep-d900-0", "nodes": ["n2", "n3"], "seconds": 380.0}','deep check d900 (asked) needs its nodes for itself [deep.reserve]',1700000003.0,1700000003.0,'');
INSERT INTO "journal" VALUES(2,'submit:d900-0','SubmitDeep','{"type": "SubmitDeep", "key": "submit:d900-0", "why": {"rule": "deep.submit", "text": "deep check d900 has its nodes", "evidence": []}, "name": "steward-deep-d900-0", "nodes": ["n2", "n3"], "argv": ["/bin/true", "--run", "d900-0", "--kinds", "InstanceConnectivity,InstanceStress", "--budget-s", "60", "--socket", "/run/steward/agent.sock"], "seconds": 120.0, "output": "/dev/null"}','deep check d900 has its nodes [deep.submit]',1.70000000409999895093e+09,1.70000000409999895093e+09,'');
CREATE TABLE ledger (
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	begun FLOAT NOT NULL, 
	ended FLOAT, 
	job BIGINT, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE memory (
	section VARCHAR(40) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (section, "key")
);
INSERT INTO "memory" VALUES('agents','"n2"','{"instance":"i-2","boot":"i-2-b1"}');
INSERT INTO "memory" VALUES('agents','"n3"','{"instance":"i-3","boot":"i-3-b1"}');
INSERT INTO "memory" VALUES('agents','"n5"','{"instance":"i-5","boot":"i-5-b1"}');
INSERT INTO "memory" VALUES('agents','"n1"','{"instance":"i-1","boot":"i-1-b1"}');
INSERT INTO "memory" VALUES('agents','"n4"','{"instance":"i-4","boot":"i-4-b1"}');
INSERT INTO "memory" VALUES('served','"n2"','"i-2"');
INSERT INTO "memory" VALUES('served','"n3"','"i-3"');
INSERT INTO "memory" VALUES('served','"n1"','"i-1"');
INSERT INTO "memory" VALUES('served','"n4"','"i-4"');
INSERT INTO "memory" VALUES('asked','"reserve:d900-0"','1700000003.0');
INSERT INTO "memory" VALUES('noted','"deep-free:d900-0"','1700000003.0');
INSERT INTO "memory" VALUES('asked','"submit:d900-0"','1700000004.099999');
INSERT INTO "memory" VALUES('deeps','"d900"','{"id":"d900","cause":"asked","who":"ann","kinds":["InstanceConnectivity","InstanceStress"],"nodes":["n2","n3"],"asked":1700000003.0,"state":"running","entered":1700000005.199998,"waiter":"","tries":0,"job":2,"started":1700000005.199998,"ended":null,"results":[],"why":[],"measures":[]}');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('journal',2);
INSERT INTO "sqlite_sequence" VALUES('events',2);
COMMIT;
