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
INSERT INTO "events" VALUES(1,1700000027.0,'cluster.updated',NULL,NULL,'{"at": 1700000027.0, "kind": "cluster.updated", "text": "me updated cluster demo: workers 4 -> 5", "level": "info", "node": null, "job": null, "case": null, "data": [["operation", "d49aa98a-82ec-52c3-83b2-fc4a85ae867a"], ["who", "me"]]}');
INSERT INTO "events" VALUES(2,1700000027.0,'slot.launch','workers-5',NULL,'{"at": 1700000027.0, "kind": "slot.launch", "text": "workers-5: waiting -> launch: its turn has come, and Slurm starts nothing on its node", "level": "info", "node": "workers-5", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(3,1700000027.0,'gate.closed',NULL,NULL,'{"at": 1700000027.0, "kind": "gate.closed", "text": "partition workers is closed: group workers waits for its minimum [gate.minimum] (group workers is Updating with 4 nodes, minimum 5, target 5)", "level": "info", "node": null, "job": null, "case": null, "data": []}');
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
INSERT INTO "journal" VALUES(1,'launch:abcdef012345-7-0:1700000027.000','LaunchInstance','{"type": "LaunchInstance", "key": "launch:abcdef012345-7-0:1700000027.000", "why": {"rule": "slot.launch", "text": "an instance for workers-5 of group workers", "evidence": ["target 5, minimum 5", "group workers shall have 5 instances [group.target] (1 more than there are slots)"]}, "slot": {"node": "workers-5", "group": "workers", "fixed": false, "instead_of": null, "types": ["ml.g5.xlarge"], "image": "", "release": "", "features": ["workers"], "role": "Compute"}, "token": "abcdef012345-7-0", "case": null}','an instance for workers-5 of group workers [slot.launch] (target 5, minimum 5; group workers shall have 5 instances [group.target] (1 more than there are slots))',1700000027.0,1700000027.0,'');
INSERT INTO "journal" VALUES(2,'gate:workers:close','SetGate','{"type": "SetGate", "key": "gate:workers:close", "why": {"rule": "gate.minimum", "text": "partition workers is closed: group workers waits for its minimum", "evidence": ["group workers is Updating with 4 nodes, minimum 5, target 5"]}, "partition": "workers", "open": false}','partition workers is closed: group workers waits for its minimum [gate.minimum] (group workers is Updating with 4 nodes, minimum 5, target 5)',1700000027.0,1700000027.0,'');
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
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-2-0:1700000000.000"','1700000000.0');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-3-0:1700000000.000"','1700000000.0');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-4-0:1700000000.000"','1700000000.0');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-5-0:1700000000.100"','1700000000.1');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-2-0"','1700000004.1999998');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-3-0"','1700000004.1999998');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-4-0"','1700000004.1999998');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-5-0"','1700000004.1999998');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-2-0-0-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-3-0-0-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-4-0-0-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-5-0-0-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-2-0"','1700000008.3999996');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-3-0"','1700000008.3999996');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-4-0"','1700000008.3999996');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-5-0"','1700000008.3999996');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-2-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-3-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-4-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-5-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"gate:workers:open"','1700000008.5999994');
INSERT INTO "memory" VALUES('agents','"workers-2"','{"instance":"i-2","boot":"i-2-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-3"','{"instance":"i-3","boot":"i-3-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-1"','{"instance":"i-1","boot":"i-1-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-4"','{"instance":"i-4","boot":"i-4-b1"}');
INSERT INTO "memory" VALUES('served','"workers-2"','"i-2"');
INSERT INTO "memory" VALUES('served','"workers-3"','"i-3"');
INSERT INTO "memory" VALUES('served','"workers-1"','"i-1"');
INSERT INTO "memory" VALUES('served','"workers-4"','"i-4"');
INSERT INTO "memory" VALUES('groups','"controller"','{"name":"controller","role":"Controller","types":["ml.g5.xlarge"],"goal":{"target":1,"minimum":1},"status":"InService","created":1700000000.0,"partition":"","features":[],"lifecycle":{"source":"","on_create":"","on_init_complete":"","sha256":""},"version":{"image":"","release":"","serial":0},"on_start_checks":[],"threads_per_core":0,"good":{"target":1,"minimum":1},"minimum_since":null,"message":"","rollout":null,"extras":"{}","logical":0}');
INSERT INTO "memory" VALUES('slots','"controller-1"','{"node":"controller-1","group":"controller","logical":"abcdef012345-1","step":"serving","entered":1700000000.0,"created":1700000000.0,"why":{"rule":"group.target","text":"group controller shall have 1 instances","evidence":["1 more than there are slots"]},"purpose":"stay","instance":"i-bac8f1bf340cc5f4b","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":null,"served":1700000000.0,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-1"','{"node":"workers-1","group":"workers","logical":"abcdef012345-2","step":"serving","entered":1700000008.5999994,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 4 instances","evidence":["4 more than there are slots"]},"purpose":"stay","instance":"i-1","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.5999994,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-2"','{"node":"workers-2","group":"workers","logical":"abcdef012345-3","step":"serving","entered":1700000008.5999994,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 4 instances","evidence":["4 more than there are slots"]},"purpose":"stay","instance":"i-2","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.5999994,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-3"','{"node":"workers-3","group":"workers","logical":"abcdef012345-4","step":"serving","entered":1700000008.5999994,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 4 instances","evidence":["4 more than there are slots"]},"purpose":"stay","instance":"i-3","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.5999994,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-4"','{"node":"workers-4","group":"workers","logical":"abcdef012345-5","step":"serving","entered":1700000008.5999994,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 4 instances","evidence":["4 more than there are slots"]},"purpose":"stay","instance":"i-4","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.1,"served":1700000008.5999994,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-7-0:1700000027.000"','1700000027.0');
INSERT INTO "memory" VALUES('asked','"gate:workers:close"','1700000027.0');
INSERT INTO "memory" VALUES('looked','','1700000027.0');
INSERT INTO "memory" VALUES('cluster','','{"name":"demo","id":"abcdef012345","created":1700000000.0,"status":"InService","continuous":true,"recovery":true,"message":"","tags":[],"extras":"{}","serial":7}');
INSERT INTO "memory" VALUES('groups','"workers"','{"name":"workers","role":"Compute","types":["ml.g5.xlarge"],"goal":{"target":5,"minimum":5},"status":"Updating","created":1700000000.0,"partition":"workers","features":[],"lifecycle":{"source":"file:///scripts","on_create":"on_create.sh","on_init_complete":"","sha256":""},"version":{"image":"","release":"","serial":0},"on_start_checks":[],"threads_per_core":0,"good":{"target":4,"minimum":1},"minimum_since":1700000027.0,"message":"","rollout":null,"extras":"{}","logical":0}');
INSERT INTO "memory" VALUES('slots','"workers-5"','{"node":"workers-5","group":"workers","logical":"abcdef012345-7","step":"launch","entered":1700000027.0,"created":1700000027.0,"why":{"rule":"group.target","text":"group workers shall have 5 instances","evidence":["1 more than there are slots"]},"purpose":"stay","instance":null,"version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000027.0,"served":null,"updated":null,"has_served":false}');
INSERT INTO "memory" VALUES('gates','"workers"','{"partition":"workers","open":false,"set_at":1700000027.0,"confirmed":false,"yielded":null,"why":"partition workers is closed: group workers waits for its minimum [gate.minimum] (group workers is Updating with 4 nodes, minimum 5, target 5)"}');
INSERT INTO "memory" VALUES('operations','"d49aa98a-82ec-52c3-83b2-fc4a85ae867a"','{"id":"d49aa98a-82ec-52c3-83b2-fc4a85ae867a","at":1700000027.0,"before":[["workers",{"target":4,"minimum":1}]],"after":[["workers",{"target":5,"minimum":5}]],"superseded":[],"finished":null}');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('journal',2);
INSERT INTO "sqlite_sequence" VALUES('events',3);
COMMIT;
