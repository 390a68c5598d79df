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
INSERT INTO "events" VALUES(3,1700000003.1,'node.suspect','n1',NULL,'{"at": 1700000003.1, "kind": "node.suspect", "text": "n1: the agent is gone, a second witness is awaited [node.silent] (agent lost 0.0 s ago: connection reset)", "level": "warning", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(4,1.70000000339999961847e+09,'case.opened','n1',NULL,'{"at": 1700000003.3999996, "kind": "case.opened", "text": "n1: the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n1:6818: refused)", "level": "warning", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(5,1.70000000339999961847e+09,'case.drain','n1',NULL,'{"at": 1700000003.3999996, "kind": "case.drain", "text": "n1: suspect -> drain: the fault is certain and we may act", "level": "info", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(6,1.70000000349999952319e+09,'case.release','n1',NULL,'{"at": 1700000003.4999995, "kind": "case.release", "text": "n1: drain -> release: Slurm shows the node out of service", "level": "info", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(7,1.70000000349999952319e+09,'case.launch','n1',NULL,'{"at": 1700000003.4999995, "kind": "case.launch", "text": "n1: release -> launch: no job on it, and it is its turn", "level": "info", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(8,1.70000000349999952319e+09,'job.decided',NULL,1,'{"at": 1700000003.4999995, "kind": "job.decided", "text": "job 1: requeue: Slurm requeued it after a node''s failure [resume.by_slurm] (n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused); n1: case c1-6553f103, the agent is gone and a second witness agrees; n1: Slurm has it DOWN)", "level": "info", "node": null, "job": 1, "case": null, "data": []}');
INSERT INTO "events" VALUES(9,1.70000000349999952319e+09,'job.requeued',NULL,1,'{"at": 1700000003.4999995, "kind": "job.requeued", "text": "job 1 is back in the queue (restart 1)", "level": "info", "node": null, "job": 1, "case": null, "data": []}');
INSERT INTO "events" VALUES(10,1.70000000359999942781e+09,'case.provision','n1',NULL,'{"at": 1700000003.5999994, "kind": "case.provision", "text": "n1: launch -> provision: the new instance exists", "level": "info", "node": "n1", "job": null, "case": "c1-6553f103", "data": []}');
INSERT INTO "events" VALUES(11,1.70000000389999914168e+09,'job.let_go',NULL,1,'{"at": 1700000003.8999991, "kind": "job.let_go", "text": "job 1: n2 let go of its lost run: its other nodes clean up only when they give up on a lost one [job.let_go] (n1: case c1-6553f103, the agent is gone and a second witness agrees)", "level": "info", "node": null, "job": 1, "case": null, "data": []}');
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
INSERT INTO "journal" VALUES(1,'probe:n1','ProbeNode','{"type": "ProbeNode", "key": "probe:n1", "why": {"rule": "node.silent", "text": "the agent is gone, a second witness is awaited", "evidence": ["agent lost 0.0 s ago: connection reset"]}, "node": "n1", "peers": []}','the agent is gone, a second witness is awaited [node.silent] (agent lost 0.0 s ago: connection reset)',1700000003.1,1700000003.1,'');
INSERT INTO "journal" VALUES(2,'down:c1-6553f103','DownNode','{"type": "DownNode", "key": "down:c1-6553f103", "why": {"rule": "node.lost", "text": "the agent is gone and a second witness agrees", "evidence": ["agent lost 0.3 s ago: connection reset", "slurmd''s port at n1:6818: refused"]}, "node": "n1", "mark": {"check": "agent", "action": "replace", "id": "c1-6553f103"}}','the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n1:6818: refused)',1.70000000339999961847e+09,1.70000000339999961847e+09,'');
INSERT INTO "journal" VALUES(3,'launch:c1-6553f103-0:0','LaunchInstance','{"type": "LaunchInstance", "key": "launch:c1-6553f103-0:0", "why": {"rule": "case.launch", "text": "a new instance for n1", "evidence": ["the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n1:6818: refused)"]}, "slot": {"node": "n1", "group": "main", "fixed": false, "instead_of": null, "types": [], "image": "", "release": "", "features": [], "role": "Compute"}, "token": "c1-6553f103-0", "case": "c1-6553f103"}','a new instance for n1 [case.launch] (the agent is gone and a second witness agrees [node.lost] (agent lost 0.3 s ago: connection reset; slurmd''s port at n1:6818: refused))',1.70000000349999952319e+09,1.70000000349999952319e+09,'');
INSERT INTO "journal" VALUES(4,'letgo:1:0','LetGo','{"type": "LetGo", "key": "letgo:1:0", "why": {"rule": "job.let_go", "text": "its other nodes clean up only when they give up on a lost one", "evidence": ["n1: case c1-6553f103, the agent is gone and a second witness agrees"]}, "job": 1, "nodes": ["n2"], "restart": 0, "before": 1700000003.4999995}','its other nodes clean up only when they give up on a lost one [job.let_go] (n1: case c1-6553f103, the agent is gone and a second witness agrees)',1.70000000389999914168e+09,1.70000000389999914168e+09,'');
INSERT INTO "journal" VALUES(5,'nudge:1:1','NudgeJob','{"type": "NudgeJob", "key": "nudge:1:1", "why": {"rule": "resume.by_slurm", "text": "Slurm requeued it after a node''s failure", "evidence": ["n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused)", "n1: case c1-6553f103, the agent is gone and a second witness agrees", "n1: Slurm has it DOWN"]}, "job": 1, "restart": 1, "exclude": ["n1"], "release": false, "delay_s": 0.0}','Slurm requeued it after a node''s failure [resume.by_slurm] (n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused); n1: case c1-6553f103, the agent is gone and a second witness agrees; n1: Slurm has it DOWN)',1.70000000429999876018e+09,1.70000000429999876018e+09,'');
INSERT INTO "journal" VALUES(6,'comment:1:372f6f2b','CommentJob','{"type": "CommentJob", "key": "comment:1:372f6f2b", "why": {"rule": "job.comment", "text": "what was done for the job has changed", "evidence": []}, "job": 1, "text": "steward: resumed 1x (n1 agent 22:13Z)"}','what was done for the job has changed [job.comment]',1.70000000429999876018e+09,1.70000000429999876018e+09,'');
CREATE TABLE ledger (
	"key" VARCHAR(255) NOT NULL, 
	kind VARCHAR(10) NOT NULL, 
	begun FLOAT NOT NULL, 
	ended FLOAT, 
	job BIGINT, 
	body TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "ledger" VALUES('run:2.1700000001.0.0','run',1700000001.1,NULL,2,'{"job": 2, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n3", "n4"], "ended": null, "ending": null, "end_text": "", "decision": null, "why": null, "culprits": [], "cases": [], "cause": "", "fault": null, "detected": null, "marked": null, "decided": null, "eligible": null, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
INSERT INTO "ledger" VALUES('case:c1-6553f103.1700000003','case',1700000003.1,NULL,NULL,'{"id": "c1-6553f103", "node": "n1", "trigger": "lost", "check": "agent", "step": "provision", "entered": 1700000003.5999994, "opened": 1700000003.1, "why": {"rule": "node.lost", "text": "the agent is gone and a second witness agrees", "evidence": ["agent lost 0.3 s ago: connection reset", "slurmd''s port at n1:6818: refused"]}, "rung": "replace", "old": {"instance": "i-1", "boot": "i-1-b1"}, "old_instance": "i-1", "new_instance": "i-8", "stand_in": null, "old_slurmd": 1699999900.0, "command": "", "target": "", "hardware": "i-1", "gone": false, "launches": 0, "tries": 0, "refusals": 0, "next_try": 0.0, "fault_at": 1700000003.1, "detected": 1700000003.3999996, "marked": 1700000003.4999995, "replaced": null, "returned": null, "closed": null}');
INSERT INTO "ledger" VALUES('run:1.1700000001.0.0','run',1700000001.1,1.70000000349999952319e+09,1,'{"job": 1, "opted_at": 1700000001.0, "restart": 0, "uid": 1000, "started": 1700000001.1, "attempt": 0, "name": "$(reboot)", "partition": "main", "account": "", "nodes": ["n1", "n2"], "ended": 1700000003.4999995, "ending": "requeued", "end_text": "", "decision": "requeue", "why": {"rule": "resume.by_slurm", "text": "Slurm requeued it after a node''s failure", "evidence": ["n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused)", "n1: case c1-6553f103, the agent is gone and a second witness agrees", "n1: Slurm has it DOWN"]}, "culprits": ["n1"], "cases": ["c1-6553f103"], "cause": "agent", "fault": 1700000003.1, "detected": 1700000003.3999996, "marked": 1700000003.4999995, "decided": 1700000003.4999995, "eligible": 1700000004.2999988, "first_step": null, "step": null, "stepped": null, "checkpoint_step": null, "checkpointed": null, "told": 0.0}');
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
INSERT INTO "memory" VALUES('jobs','2','{"id":2,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":0,"unproven":0,"no_requeue":false,"by_default":false,"excluded":[],"excluded_by_user":[],"pending_from":null,"nudges":0,"last_nudge":0.0,"nodes":["n3","n4"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":null,"end_text":""}');
INSERT INTO "memory" VALUES('ledger','2','[{"job":2,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n3","n4"],"ended":null,"ending":null,"end_text":"","decision":null,"why":null,"culprits":[],"cases":[],"cause":"","fault":null,"detected":null,"marked":null,"decided":null,"eligible":null,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('asked','"probe:n1"','1700000003.1');
INSERT INTO "memory" VALUES('looked','','1700000003.1');
INSERT INTO "memory" VALUES('next_case','','2');
INSERT INTO "memory" VALUES('asked','"down:c1-6553f103"','1700000003.3999996');
INSERT INTO "memory" VALUES('noted','"unanswered:n1"','1700000003.3999996');
INSERT INTO "memory" VALUES('noted','"lost:n1"','1700000003.3999996');
INSERT INTO "memory" VALUES('mishaps','"i-1"','[{"at":1700000003.3999996,"blow":"node_fail_of_many","node":"n1"}]');
INSERT INTO "memory" VALUES('asked','"launch:c1-6553f103-0:0"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"shown:c1-6553f103"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"marks:steady"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"marks:looked"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"completing:1:1"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"decided:1:restart:1"','1700000003.4999995');
INSERT INTO "memory" VALUES('noted','"over:1:0"','1700000003.4999995');
INSERT INTO "memory" VALUES('history','"n1"','[1700000003.4999995]');
INSERT INTO "memory" VALUES('remedies','"i-1"','[{"at":1700000003.4999995,"rung":"replace","node":"n1","instance":"i-1","case":"c1-6553f103","check":"agent"}]');
INSERT INTO "memory" VALUES('cases','"c1-6553f103"','{"id":"c1-6553f103","node":"n1","trigger":"lost","check":"agent","step":"provision","entered":1700000003.5999994,"opened":1700000003.1,"why":{"rule":"node.lost","text":"the agent is gone and a second witness agrees","evidence":["agent lost 0.3 s ago: connection reset","slurmd''s port at n1:6818: refused"]},"rung":"replace","old":{"instance":"i-1","boot":"i-1-b1"},"old_instance":"i-1","new_instance":"i-8","stand_in":null,"old_slurmd":1699999900.0,"command":"","target":"","hardware":"i-1","gone":false,"launches":0,"tries":0,"refusals":0,"next_try":0.0,"fault_at":1700000003.1,"detected":1700000003.3999996,"marked":1700000003.4999995,"replaced":null,"returned":null,"closed":null}');
INSERT INTO "memory" VALUES('asked','"letgo:1:0"','1700000003.8999991');
INSERT INTO "memory" VALUES('noted','"letgo:1:0"','1700000003.8999991');
INSERT INTO "memory" VALUES('jobs','1','{"id":1,"uid":1000,"mode":{"text":"1","on":true,"without_evidence":0,"max_resumes":null,"stalls":null,"age_s":null,"backoff":null,"codes":[],"timeout":null,"requeue":null,"hang":null,"hang_s":null,"stacks":"","checkpoint":""},"opted_at":1700000001.0,"restarts":0,"resumes":1,"unproven":0,"no_requeue":false,"by_default":false,"excluded":["n1"],"excluded_by_user":[],"pending_from":1700000003.4999995,"nudges":1,"last_nudge":1700000004.2999988,"nodes":["n1","n2"],"parts":[],"started":1700000001.1,"excised":[],"attempts":[{"decided_for":"restart:1","decision":"requeue","why":{"rule":"resume.by_slurm","text":"Slurm requeued it after a node''s failure","evidence":["n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused)","n1: case c1-6553f103, the agent is gone and a second witness agrees","n1: Slurm has it DOWN"]},"at":1700000003.4999995,"culprits":["n1"],"restart":0,"final":false,"requeued":1700000003.4999995,"running":null,"given_limit_s":null,"saved":null,"lines":[]}],"saved":null,"hang":null,"suspension":null,"kept":null,"raised":null,"lent":null,"ended":null,"end_text":""}');
INSERT INTO "memory" VALUES('ledger','1','[{"job":1,"opted_at":1700000001.0,"restart":0,"uid":1000,"started":1700000001.1,"attempt":0,"name":"$(reboot)","partition":"main","account":"","nodes":["n1","n2"],"ended":1700000003.4999995,"ending":"requeued","end_text":"","decision":"requeue","why":{"rule":"resume.by_slurm","text":"Slurm requeued it after a node''s failure","evidence":["n1: the agent is gone and a second witness agrees (agent lost 0.4 s ago: connection reset; slurmd''s port at n1:6818: refused)","n1: case c1-6553f103, the agent is gone and a second witness agrees","n1: Slurm has it DOWN"]},"culprits":["n1"],"cases":["c1-6553f103"],"cause":"agent","fault":1700000003.1,"detected":1700000003.3999996,"marked":1700000003.4999995,"decided":1700000003.4999995,"eligible":1700000004.2999988,"first_step":null,"step":null,"stepped":null,"checkpoint_step":null,"checkpointed":null,"told":0.0}]');
INSERT INTO "memory" VALUES('asked','"nudge:1:1"','1700000004.2999988');
INSERT INTO "memory" VALUES('asked','"comment:1:372f6f2b"','1700000004.2999988');
INSERT INTO "memory" VALUES('noted','"clean:1:1"','1700000004.2999988');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',11);
INSERT INTO "sqlite_sequence" VALUES('journal',6);
COMMIT;
