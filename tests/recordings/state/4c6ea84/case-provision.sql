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
INSERT INTO "events" VALUES(3,1.70000000369999933243e+09,'node.fault','n2',NULL,'{"at": 1700000003.6999993, "kind": "node.fault", "text": "n2: check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`)", "level": "warning", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(4,1.70000000369999933243e+09,'case.opened','n2',NULL,'{"at": 1700000003.6999993, "kind": "case.opened", "text": "n2: check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`)", "level": "warning", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(5,1.70000000369999933243e+09,'case.drain','n2',NULL,'{"at": 1700000003.6999993, "kind": "case.drain", "text": "n2: suspect -> drain: the fault is certain and we may act", "level": "info", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(6,1.70000000379999923706e+09,'case.release','n2',NULL,'{"at": 1700000003.7999992, "kind": "case.release", "text": "n2: drain -> release: Slurm shows the node out of service", "level": "info", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(7,1.70000000379999923706e+09,'case.waiting','n2',NULL,'{"at": 1700000003.7999992, "kind": "case.waiting", "text": "n2: waits for the jobs on it to end", "level": "info", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(8,1.7000000151999883651e+09,'case.launch','n2',NULL,'{"at": 1700000015.1999884, "kind": "case.launch", "text": "n2: release -> launch: no job on it, and it is its turn", "level": "info", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(9,1.7000000151999883651e+09,'job.ended',NULL,1,'{"at": 1700000015.1999884, "kind": "job.ended", "text": "job 1: COMPLETED", "level": "info", "node": null, "job": 1, "case": null, "data": []}');
INSERT INTO "events" VALUES(10,1.7000000158999876976e+09,'job.ended',NULL,2,'{"at": 1700000015.8999877, "kind": "job.ended", "text": "job 2: COMPLETED", "level": "info", "node": null, "job": 2, "case": null, "data": []}');
INSERT INTO "events" VALUES(11,1.70000001639998722072e+09,'case.provision','n2',NULL,'{"at": 1700000016.3999872, "kind": "case.provision", "text": "n2: launch -> provision: the new instance exists", "level": "info", "node": "n2", "job": null, "case": "c1-6553f103", "data": []}');
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
INSERT INTO "journal" VALUES(1,'drain:c1-6553f103','DrainNode','{"type": "DrainNode", "key": "drain:c1-6553f103", "why": {"rule": "node.degraded", "text": "check check-1 failed on n2", "evidence": ["check-1: Xid 79; $(touch /tmp/pwned) `id`"]}, "node": "n2", "mark": {"check": "check-1", "action": "replace", "id": "c1-6553f103"}}','check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`)',1.70000000369999933243e+09,1.70000000369999933243e+09,'');
INSERT INTO "journal" VALUES(2,'terminate:c1-6553f103:i-2','TerminateInstance','{"type": "TerminateInstance", "key": "terminate:c1-6553f103:i-2", "why": {"rule": "case.terminate", "text": "n2 gets a new instance", "evidence": ["check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`)"]}, "instance": "i-2", "node": "n2"}','n2 gets a new instance [case.terminate] (check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`))',1.7000000151999883651e+09,1.7000000151999883651e+09,'');
INSERT INTO "journal" VALUES(3,'launch:c1-6553f103-0:0','LaunchInstance','{"type": "LaunchInstance", "key": "launch:c1-6553f103-0:0", "why": {"rule": "case.launch", "text": "a new instance for n2", "evidence": ["check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`)"]}, "slot": {"node": "n2", "group": "main", "fixed": false, "instead_of": null, "types": [], "image": "", "release": "", "features": [], "role": "Compute"}, "token": "c1-6553f103-0", "case": "c1-6553f103"}','a new instance for n2 [case.launch] (check check-1 failed on n2 [node.degraded] (check-1: Xid 79; $(touch /tmp/pwned) `id`))',1.70000001529998826985e+09,1.70000001529998826985e+09,'');
CREATE TABLE ledger (
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	begun FLOAT NOT NULL, 
	ended FLOAT, 
	job BIGINT, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "ledger" VALUES('run:1.1700000001.0.0','run',1700000001.1,1.7000000151999883651e+09,1,'{"job": 1, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n1", "n2"], "ended": 1700000015.1999884, "ending": "over", "end_text": "COMPLETED", "decision": null, "why": null, "culprits": [], "cases": [], "cause": "", "fault": null, "detected": null, "marked": null, "decided": null, "eligible": null, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
INSERT INTO "ledger" VALUES('run:2.1700000001.0.0','run',1700000001.1,1.7000000151999883651e+09,2,'{"job": 2, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n3", "n4"], "ended": 1700000015.1999884, "ending": "over", "end_text": "COMPLETED", "decision": null, "why": null, "culprits": [], "cases": [], "cause": "", "fault": null, "detected": null, "marked": null, "decided": null, "eligible": null, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
INSERT INTO "ledger" VALUES('case:c1-6553f103.1700000003','case',1.70000000369999933243e+09,NULL,NULL,'{"id": "c1-6553f103", "node": "n2", "trigger": "degraded", "check": "check-1", "step": "provision", "entered": 1700000016.3999872, "opened": 1700000003.6999993, "why": {"rule": "node.degraded", "text": "check check-1 failed on n2", "evidence": ["check-1: Xid 79; $(touch /tmp/pwned) `id`"]}, "rung": "replace", "old": {"instance": "i-2", "boot": "i-2-b1"}, "old_instance": "i-2", "new_instance": "i-8", "stand_in": null, "old_slurmd": 1699999900.0, "command": "", "target": "", "hardware": "i-2", "gone": false, "launches": 0, "tries": 0, "refusals": 0, "next_try": 0.0, "fault_at": 1700000003.0, "detected": 1700000003.6999993, "marked": 1700000003.7999992, "replaced": null, "returned": null, "closed": null}');
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
INSERT INTO "memory" VALUES('asked','"drain:c1-6553f103"','1700000003.6999993');
INSERT INTO "memory" VALUES('next_case','','2');
INSERT INTO "memory" VALUES('noted','"shown:c1-6553f103"','1700000003.7999992');
INSERT INTO "memory" VALUES('noted','"marks:steady"','1700000003.7999992');
INSERT INTO "memory" VALUES('noted','"wait:c1-6553f103:n2"','1700000003.7999992');
INSERT INTO "memory" VALUES('looked','','1700000011.299992');
INSERT INTO "memory" VALUES('noted','"marks:looked"','1700000011.399992');
INSERT INTO "memory" VALUES('jobs','1','{"id":1,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":0,"unproven":0,"no_requeue":false,"by_default":false,"excluded":[],"excluded_by_user":[],"pending_from":null,"nudges":0,"last_nudge":0.0,"nodes":["n1","n2"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":1700000015.1999884,"end_text":"COMPLETED"}');
INSERT INTO "memory" VALUES('ledger','1','[{"job":1,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n1","n2"],"ended":1700000015.1999884,"ending":"over","end_text":"COMPLETED","decision":null,"why":null,"culprits":[],"cases":[],"cause":"","fault":null,"detected":null,"marked":null,"decided":null,"eligible":null,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('asked','"terminate:c1-6553f103:i-2"','1700000015.1999884');
INSERT INTO "memory" VALUES('history','"n2"','[1700000015.1999884]');
INSERT INTO "memory" VALUES('remedies','"i-2"','[{"at":1700000015.1999884,"rung":"replace","node":"n2","instance":"i-2","case":"c1-6553f103","check":"check-1"}]');
INSERT INTO "memory" VALUES('asked','"launch:c1-6553f103-0:0"','1700000015.2999883');
INSERT INTO "memory" VALUES('jobs','2','{"id":2,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":0,"unproven":0,"no_requeue":false,"by_default":false,"excluded":[],"excluded_by_user":[],"pending_from":null,"nudges":0,"last_nudge":0.0,"nodes":["n3","n4"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":1700000015.8999877,"end_text":"COMPLETED"}');
INSERT INTO "memory" VALUES('ledger','2','[{"job":2,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n3","n4"],"ended":1700000015.1999884,"ending":"over","end_text":"COMPLETED","decision":null,"why":null,"culprits":[],"cases":[],"cause":"","fault":null,"detected":null,"marked":null,"decided":null,"eligible":null,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('cases','"c1-6553f103"','{"id":"c1-6553f103","node":"n2","trigger":"degraded","check":"check-1","step":"provision","entered":1700000016.3999872,"opened":1700000003.6999993,"why":{"rule":"node.degraded","text":"check check-1 failed on n2","evidence":["check-1: Xid 79; $(touch /tmp/pwned) `id`"]},"rung":"replace","old":{"instance":"i-2","boot":"i-2-b1"},"old_instance":"i-2","new_instance":"i-8","stand_in":null,"old_slurmd":1699999900.0,"command":"","target":"","hardware":"i-2","gone":false,"launches":0,"tries":0,"refusals":0,"next_try":0.0,"fault_at":1700000003.0,"detected":1700000003.6999993,"marked":1700000003.7999992,"replaced":null,"returned":null,"closed":null}');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',11);
INSERT INTO "sqlite_sequence" VALUES('journal',3);
COMMIT;
