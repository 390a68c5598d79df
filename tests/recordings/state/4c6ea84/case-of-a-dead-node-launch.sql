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
INSERT INTO "events" VALUES(1,1700000001.0,'job.opted_in',NULL,1,'{"at": 1700000001.0, "kind": "job.opted_in", "text": "job 1 is resumed if a node fails (--auto-resume=1)", "level": "info", "node": null, "job": 1, "case": null, "data": []}');
INSERT INTO "events" VALUES(2,1700000001.0,'job.opted_in',NULL,2,'{"at": 1700000001.0, "kind": "job.opted_in", "text": "job 2 is resumed if a node fails (--auto-resume=1)", "level": "info", "node": null, "job": 2, "case": null, "data": []}');
INSERT INTO "events" VALUES(3,1700000003.1,'node.suspect','n6',NULL,'{"at": 1700000003.1, "kind": "node.suspect", "text": "n6: the agent is gone, a second witness is awaited [node.silent] (agent lost 0.0 s ago: connection reset)", "level": "warning", "node": "n6", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(4,1.70000000339999961847e+09,'case.opened','n6',NULL,'{"at": 1700000003.3999996, "kind": "case.opened", "text": "n6: the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n6:6818: refused)", "level": "warning", "node": "n6", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(5,1.70000000339999961847e+09,'case.drain','n6',NULL,'{"at": 1700000003.3999996, "kind": "case.drain", "text": "n6: suspect -> drain: the fault is certain and we may act", "level": "info", "node": "n6", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(6,1.70000000349999952319e+09,'case.release','n6',NULL,'{"at": 1700000003.4999995, "kind": "case.release", "text": "n6: drain -> release: Slurm shows the node out of service", "level": "info", "node": "n6", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(7,1.70000000349999952319e+09,'case.launch','n6',NULL,'{"at": 1700000003.4999995, "kind": "case.launch", "text": "n6: release -> launch: no job on it, and it is its turn", "level": "info", "node": "n6", "job": null, "case": "c1-6553f103", "data": []}');
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
INSERT INTO "journal" VALUES(1,'probe:n6','ProbeNode','{"type": "ProbeNode", "key": "probe:n6", "why": {"rule": "node.silent", "text": "the agent is gone, a second witness is awaited", "evidence": ["agent lost 0.0 s ago: connection reset"]}, "node": "n6", "peers": []}','the agent is gone, a second witness is awaited [node.silent] (agent lost 0.0 s ago: connection reset)',1700000003.1,1700000003.1,'');
INSERT INTO "journal" VALUES(2,'down:c1-6553f103','DownNode','{"type": "DownNode", "key": "down:c1-6553f103", "why": {"rule": "node.lost", "text": "the agent is gone and a second witness agrees", "evidence": ["agent lost 0.3 s ago: connection reset", "slurmd''s port at n6:6818: refused"]}, "node": "n6", "mark": {"check": "agent", "action": "replace", "id": "c1-6553f103"}}','the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n6:6818: refused)',1.70000000339999961847e+09,1.70000000339999961847e+09,'');
INSERT INTO "journal" VALUES(3,'launch:c1-6553f103-0:0','LaunchInstance','{"type": "LaunchInstance", "key": "launch:c1-6553f103-0:0", "why": {"rule": "case.launch", "text": "a new instance for n6", "evidence": ["the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n6:6818: refused)"]}, "slot": {"node": "n6", "group": "main", "fixed": false, "instead_of": null, "types": [], "image": "", "release": "", "features": [], "role": "Compute"}, "token": "c1-6553f103-0", "case": "c1-6553f103"}','a new instance for n6 [case.launch] (the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n6:6818: refused))',1.70000000349999952319e+09,1.70000000349999952319e+09,'');
CREATE TABLE ledger (
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	begun FLOAT NOT NULL, 
	ended FLOAT, 
	job BIGINT, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "ledger" VALUES('run:1.1700000001.0.0','run',1700000001.1,NULL,1,'{"job": 1, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n1", "n2"], "ended": null, "ending": null, "end_text": "", "decision": null, "why": null, "culprits": [], "cases": [], "cause": "", "fault": null, "detected": null, "marked": null, "decided": null, "eligible": null, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
INSERT INTO "ledger" VALUES('run:2.1700000001.0.0','run',1700000001.1,NULL,2,'{"job": 2, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n3", "n4"], "ended": null, "ending": null, "end_text": "", "decision": null, "why": null, "culprits": [], "cases": [], "cause": "", "fault": null, "detected": null, "marked": null, "decided": null, "eligible": null, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
INSERT INTO "ledger" VALUES('case:c1-6553f103.1700000003','case',1700000003.1,NULL,NULL,'{"id": "c1-6553f103", "node": "n6", "trigger": "lost", "check": "agent", "step": "launch", "entered": 1700000003.4999995, "opened": 1700000003.1, "why": {"rule": "node.lost", "text": "the agent is gone and a second witness agrees", "evidence": ["agent lost 0.3 s ago: connection reset", "slurmd''s port at n6:6818: refused"]}, "rung": "replace", "old": {"instance": "i-6", "boot": "i-6-b1"}, "old_instance": "i-6", "new_instance": null, "stand_in": null, "old_slurmd": 1699999900.0, "command": "", "target": "", "hardware": "i-6", "gone": false, "launches": 0, "tries": 0, "refusals": 0, "next_try": 0.0, "fault_at": 1700000003.1, "detected": 1700000003.3999996, "marked": 1700000003.4999995, "replaced": null, "returned": null, "closed": null}');
CREATE TABLE memory (
	section VARCHAR(40) NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (section, "key")
);
INSERT INTO "memory" VALUES('agents','"n7"','{"instance":"i-7","boot":"i-7-b1"}');
INSERT INTO "memory" VALUES('agents','"n2"','{"instance":"i-2","boot":"i-2-b1"}');
INSERT INTO "memory" VALUES('agents','"n3"','{"instance":"i-3","boot":"i-3-b1"}');
INSERT INTO "memory" VALUES('agents','"n5"','{"instance":"i-5","boot":"i-5-b1"}');
INSERT INTO "memory" VALUES('agents','"n1"','{"instance":"i-1","boot":"i-1-b1"}');
INSERT INTO "memory" VALUES('agents','"n6"','{"instance":"i-6","boot":"i-6-b1"}');
INSERT INTO "memory" VALUES('agents','"n4"','{"instance":"i-4","boot":"i-4-b1"}');
INSERT INTO "memory" VALUES('served','"n2"','"i-2"');
INSERT INTO "memory" VALUES('served','"n3"','"i-3"');
INSERT INTO "memory" VALUES('served','"n5"','"i-5"');
INSERT INTO "memory" VALUES('served','"n1"','"i-1"');
INSERT INTO "memory" VALUES('served','"n6"','"i-6"');
INSERT INTO "memory" VALUES('served','"n4"','"i-4"');
INSERT INTO "memory" VALUES('jobs','1','{"id":1,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":0,"unproven":0,"no_requeue":false,"by_default":false,"excluded":[],"excluded_by_user":[],"pending_from":null,"nudges":0,"last_nudge":0.0,"nodes":["n1","n2"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":null,"end_text":""}');
INSERT INTO "memory" VALUES('jobs','2','{"id":2,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":0,"unproven":0,"no_requeue":false,"by_default":false,"excluded":[],"excluded_by_user":[],"pending_from":null,"nudges":0,"last_nudge":0.0,"nodes":["n3","n4"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":null,"end_text":""}');
INSERT INTO "memory" VALUES('ledger','1','[{"job":1,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n1","n2"],"ended":null,"ending":null,"end_text":"","decision":null,"why":null,"culprits":[],"cases":[],"cause":"","fault":null,"detected":null,"marked":null,"decided":null,"eligible":null,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('ledger','2','[{"job":2,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n3","n4"],"ended":null,"ending":null,"end_text":"","decision":null,"why":null,"culprits":[],"cases":[],"cause":"","fault":null,"detected":null,"marked":null,"decided":null,"eligible":null,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('asked','"probe:n6"','1700000003.1');
INSERT INTO "memory" VALUES('looked','','1700000003.1');
INSERT INTO "memory" VALUES('next_case','','2');
INSERT INTO "memory" VALUES('asked','"down:c1-6553f103"','1700000003.3999996');
INSERT INTO "memory" VALUES('noted','"unanswered:n6"','1700000003.3999996');
INSERT INTO "memory" VALUES('noted','"lost:n6"','1700000003.3999996');
INSERT INTO "memory" VALUES('cases','"c1-6553f103"','{"id":"c1-6553f103","node":"n6","trigger":"lost","check":"agent","step":"launch","entered":1700000003.4999995,"opened":1700000003.1,"why":{"rule":"node.lost","text":"the agent is gone and a second witness agrees","evidence":["agent lost 0.3 s ago: connection reset","slurmd''s port at n6:6818: refused"]},"rung":"replace","old":{"instance":"i-6","boot":"i-6-b1"},"old_instance":"i-6","new_instance":null,"stand_in":null,"old_slurmd":1699999900.0,"command":"","target":"","hardware":"i-6","gone":false,"launches":0,"tries":0,"refusals":0,"next_try":0.0,"fault_at":1700000003.1,"detected":1700000003.3999996,"marked":1700000003.4999995,"replaced":null,"returned":null,"closed":null}');
INSERT INTO "memory" VALUES('asked','"launch:c1-6553f103-0:0"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"shown:c1-6553f103"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"marks:steady"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"marks:looked"','1700000003.4999995');
INSERT INTO "memory" VALUES('history','"n6"','[1700000003.4999995]');
INSERT INTO "memory" VALUES('remedies','"i-6"','[{"at":1700000003.4999995,"rung":"replace","node":"n6","instance":"i-6","case":"c1-6553f103","check":"agent"}]');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',7);
INSERT INTO "sqlite_sequence" VALUES('journal',3);
COMMIT;
