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
INSERT INTO "events" VALUES(1,1700000027.0,'rollout.ordered',NULL,NULL,'{"at": 1700000027.0, "kind": "rollout.ordered", "text": "me ordered a software update of workers to v1", "level": "info", "node": null, "job": null, "case": null, "data": [["group", "workers"], ["who", "me"]]}');
INSERT INTO "events" VALUES(2,1700000027.0,'rollout.begun',NULL,NULL,'{"at": 1700000027.0, "kind": "rollout.begun", "text": "workers: the software update begins", "level": "info", "node": null, "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(3,1700000027.0,'rollout.batch',NULL,NULL,'{"at": 1700000027.0, "kind": "rollout.batch", "text": "workers: InProgress: workers-7, workers-8", "level": "info", "node": null, "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(4,1700000027.0,'slot.drain','workers-7',NULL,'{"at": 1700000027.0, "kind": "slot.drain", "text": "workers-7: serving -> drain: it shall leave, or be made anew", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(5,1700000027.0,'slot.drain','workers-8',NULL,'{"at": 1700000027.0, "kind": "slot.drain", "text": "workers-8: serving -> drain: it shall leave, or be made anew", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(6,1700000027.0,'slot.backup','workers-7',NULL,'{"at": 1700000027.0, "kind": "slot.backup", "text": "workers-7: drain -> backup: no job is on its node", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(7,1700000027.0,'slot.end','workers-7',NULL,'{"at": 1700000027.0, "kind": "slot.end", "text": "workers-7: backup -> end: it was backed up, or need not be", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(8,1700000027.0,'slot.backup','workers-8',NULL,'{"at": 1700000027.0, "kind": "slot.backup", "text": "workers-8: drain -> backup: no job is on its node", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(9,1700000027.0,'slot.end','workers-8',NULL,'{"at": 1700000027.0, "kind": "slot.end", "text": "workers-8: backup -> end: it was backed up, or need not be", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(10,1.70000002719999980926e+09,'slot.waiting','workers-7',NULL,'{"at": 1700000027.1999998, "kind": "slot.waiting", "text": "workers-7: end -> waiting: its instance is gone, and another one is wanted", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(11,1.70000002719999980926e+09,'slot.launch','workers-7',NULL,'{"at": 1700000027.1999998, "kind": "slot.launch", "text": "workers-7: waiting -> launch: its turn has come, and Slurm starts nothing on its node", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(12,1.70000002719999980926e+09,'slot.waiting','workers-8',NULL,'{"at": 1700000027.1999998, "kind": "slot.waiting", "text": "workers-8: end -> waiting: its instance is gone, and another one is wanted", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(13,1.70000002719999980926e+09,'slot.launch','workers-8',NULL,'{"at": 1700000027.1999998, "kind": "slot.launch", "text": "workers-8: waiting -> launch: its turn has come, and Slurm starts nothing on its node", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(14,1.70000002829999876025e+09,'slot.provision','workers-7',NULL,'{"at": 1700000028.2999988, "kind": "slot.provision", "text": "workers-7: launch -> provision: the instance exists", "level": "info", "node": "workers-7", "job": null, "case": null, "data": [["group", "workers"]]}');
INSERT INTO "events" VALUES(15,1.70000002829999876025e+09,'slot.provision','workers-8',NULL,'{"at": 1700000028.2999988, "kind": "slot.provision", "text": "workers-8: launch -> provision: the instance exists", "level": "info", "node": "workers-8", "job": null, "case": null, "data": [["group", "workers"]]}');
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
INSERT INTO "journal" VALUES(1,'drain:renew:abcdef012345-8-0','DrainNode','{"type": "DrainNode", "key": "drain:renew:abcdef012345-8-0", "why": {"rule": "slot.renew", "text": "workers-7 is made anew in group workers", "evidence": ["slot abcdef012345-8", "workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "node": "workers-7", "mark": {"check": "update", "action": "renew", "id": "abcdef012345"}}','workers-7 is made anew in group workers [slot.renew] (slot abcdef012345-8; workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.0,1700000027.0,'');
INSERT INTO "journal" VALUES(2,'drain:renew:abcdef012345-9-0','DrainNode','{"type": "DrainNode", "key": "drain:renew:abcdef012345-9-0", "why": {"rule": "slot.renew", "text": "workers-8 is made anew in group workers", "evidence": ["slot abcdef012345-9", "workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "node": "workers-8", "mark": {"check": "update", "action": "renew", "id": "abcdef012345"}}','workers-8 is made anew in group workers [slot.renew] (slot abcdef012345-9; workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.0,1700000027.0,'');
INSERT INTO "journal" VALUES(3,'down:update:abcdef012345-8-0','DownNode','{"type": "DownNode", "key": "down:update:abcdef012345-8-0", "why": {"rule": "slot.down", "text": "workers-7 is made anew in group workers", "evidence": ["slot abcdef012345-8", "workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "node": "workers-7", "mark": {"check": "update", "action": "renew", "id": "abcdef012345"}}','workers-7 is made anew in group workers [slot.down] (slot abcdef012345-8; workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.0,1700000027.0,'');
INSERT INTO "journal" VALUES(4,'down:update:abcdef012345-9-0','DownNode','{"type": "DownNode", "key": "down:update:abcdef012345-9-0", "why": {"rule": "slot.down", "text": "workers-8 is made anew in group workers", "evidence": ["slot abcdef012345-9", "workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "node": "workers-8", "mark": {"check": "update", "action": "renew", "id": "abcdef012345"}}','workers-8 is made anew in group workers [slot.down] (slot abcdef012345-9; workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.0,1700000027.0,'');
INSERT INTO "journal" VALUES(5,'terminate:abcdef012345-8:i-7','TerminateInstance','{"type": "TerminateInstance", "key": "terminate:abcdef012345-8:i-7", "why": {"rule": "slot.end", "text": "workers-7 is made anew in group workers", "evidence": ["slot abcdef012345-8", "workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "instance": "i-7", "node": "workers-7"}','workers-7 is made anew in group workers [slot.end] (slot abcdef012345-8; workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.1,1700000027.1,'');
INSERT INTO "journal" VALUES(6,'terminate:abcdef012345-9:i-8','TerminateInstance','{"type": "TerminateInstance", "key": "terminate:abcdef012345-9:i-8", "why": {"rule": "slot.end", "text": "workers-8 is made anew in group workers", "evidence": ["slot abcdef012345-9", "workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "instance": "i-8", "node": "workers-8"}','workers-8 is made anew in group workers [slot.end] (slot abcdef012345-9; workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1700000027.1,1700000027.1,'');
INSERT INTO "journal" VALUES(7,'launch:abcdef012345-8-1:1700000027.200','LaunchInstance','{"type": "LaunchInstance", "key": "launch:abcdef012345-8-1:1700000027.200", "why": {"rule": "slot.launch", "text": "an instance for workers-7 of group workers", "evidence": ["target 8, minimum 1", "workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "slot": {"node": "workers-7", "group": "workers", "fixed": false, "instead_of": null, "types": ["ml.g5.xlarge"], "image": "", "release": "v1", "features": ["workers"], "role": "Compute"}, "token": "abcdef012345-8-1", "case": null}','an instance for workers-7 of group workers [slot.launch] (target 8, minimum 1; workers-7 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1.70000002719999980926e+09,1.70000002719999980926e+09,'');
INSERT INTO "journal" VALUES(8,'launch:abcdef012345-9-1:1700000027.200','LaunchInstance','{"type": "LaunchInstance", "key": "launch:abcdef012345-9-1:1700000027.200", "why": {"rule": "slot.launch", "text": "an instance for workers-8 of group workers", "evidence": ["target 8, minimum 1", "workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0)"]}, "slot": {"node": "workers-8", "group": "workers", "fixed": false, "instead_of": null, "types": ["ml.g5.xlarge"], "image": "", "release": "v1", "features": ["workers"], "role": "Compute"}, "token": "abcdef012345-9-1", "case": null}','an instance for workers-8 of group workers [slot.launch] (target 8, minimum 1; workers-8 gets the version of the software update of workers [rollout.renew] (made from the default image, update 0))',1.70000002719999980926e+09,1.70000002719999980926e+09,'');
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
INSERT INTO "memory" VALUES('asked','"gate:workers:close"','1700000000.0');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-5-0:1700000000.100"','1700000000.1');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-6-0:1700000000.100"','1700000000.1');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-7-0:1700000000.100"','1700000000.1');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-8-0:1700000000.200"','1700000000.1999998');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-9-0:1700000000.200"','1700000000.1999998');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-2-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-3-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-4-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-5-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-6-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-7-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-8-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"drain:setup:abcdef012345-9-0"','1700000004.2999997');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-2-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-3-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-4-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-5-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-6-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-7-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-8-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"setup:abcdef012345-9-0-0-0"','1700000004.3999996');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-2-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-3-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-4-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-5-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-6-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-7-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-8-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"verify:abcdef012345-9-0"','1700000008.4999995');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-2-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-3-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-4-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-5-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-6-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-7-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-8-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"return:abcdef012345-9-0"','1700000008.5999994');
INSERT INTO "memory" VALUES('asked','"gate:workers:open"','1700000008.6999993');
INSERT INTO "memory" VALUES('agents','"workers-2"','{"instance":"i-2","boot":"i-2-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-1"','{"instance":"i-1","boot":"i-1-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-3"','{"instance":"i-3","boot":"i-3-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-6"','{"instance":"i-6","boot":"i-6-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-4"','{"instance":"i-4","boot":"i-4-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-5"','{"instance":"i-5","boot":"i-5-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-8"','{"instance":"i-8","boot":"i-8-b1"}');
INSERT INTO "memory" VALUES('agents','"workers-7"','{"instance":"i-7","boot":"i-7-b1"}');
INSERT INTO "memory" VALUES('served','"workers-2"','"i-2"');
INSERT INTO "memory" VALUES('served','"workers-1"','"i-1"');
INSERT INTO "memory" VALUES('served','"workers-3"','"i-3"');
INSERT INTO "memory" VALUES('served','"workers-6"','"i-6"');
INSERT INTO "memory" VALUES('served','"workers-4"','"i-4"');
INSERT INTO "memory" VALUES('served','"workers-5"','"i-5"');
INSERT INTO "memory" VALUES('served','"workers-8"','"i-8"');
INSERT INTO "memory" VALUES('served','"workers-7"','"i-7"');
INSERT INTO "memory" VALUES('groups','"controller"','{"name":"controller","role":"Controller","types":["ml.g5.xlarge"],"goal":{"target":1,"minimum":1},"status":"InService","created":1700000000.0,"partition":"","features":[],"lifecycle":{"source":"","on_create":"","on_init_complete":"","sha256":""},"version":{"image":"","release":"","serial":0},"on_start_checks":[],"threads_per_core":0,"good":{"target":1,"minimum":1},"minimum_since":null,"message":"","rollout":null,"extras":"{}","logical":0}');
INSERT INTO "memory" VALUES('slots','"controller-1"','{"node":"controller-1","group":"controller","logical":"abcdef012345-1","step":"serving","entered":1700000000.0,"created":1700000000.0,"why":{"rule":"group.target","text":"group controller shall have 1 instances","evidence":["1 more than there are slots"]},"purpose":"stay","instance":"i-bac8f1bf340cc5f4b","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":null,"served":1700000000.0,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-1"','{"node":"workers-1","group":"workers","logical":"abcdef012345-2","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-1","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-2"','{"node":"workers-2","group":"workers","logical":"abcdef012345-3","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-2","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-3"','{"node":"workers-3","group":"workers","logical":"abcdef012345-4","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-3","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.0,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-4"','{"node":"workers-4","group":"workers","logical":"abcdef012345-5","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-4","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.1,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-5"','{"node":"workers-5","group":"workers","logical":"abcdef012345-6","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-5","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.1,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-6"','{"node":"workers-6","group":"workers","logical":"abcdef012345-7","step":"serving","entered":1700000008.6999993,"created":1700000000.0,"why":{"rule":"group.target","text":"group workers shall have 8 instances","evidence":["8 more than there are slots"]},"purpose":"stay","instance":"i-6","version":{"image":"","release":"","serial":0},"launches":0,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000000.1,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('asked','"drain:renew:abcdef012345-8-0"','1700000027.0');
INSERT INTO "memory" VALUES('asked','"drain:renew:abcdef012345-9-0"','1700000027.0');
INSERT INTO "memory" VALUES('cluster','','{"name":"demo","id":"abcdef012345","created":1700000000.0,"status":"InService","continuous":true,"recovery":true,"message":"","tags":[],"extras":"{}","serial":10}');
INSERT INTO "memory" VALUES('groups','"workers"','{"name":"workers","role":"Compute","types":["ml.g5.xlarge"],"goal":{"target":8,"minimum":1},"status":"SystemUpdating","created":1700000000.0,"partition":"workers","features":[],"lifecycle":{"source":"file:///scripts","on_create":"on_create.sh","on_init_complete":"","sha256":""},"version":{"image":"","release":"v1","serial":10},"on_start_checks":[],"threads_per_core":0,"good":{"target":8,"minimum":1},"minimum_since":null,"message":"","rollout":{"state":"InProgress","wanted":{"image":"","release":"v1","serial":10},"previous":{"image":"","release":"","serial":0},"started":1700000027.0,"batch":{"count":2,"percent":0},"rollback_batch":null,"wait_s":0.0,"alarms":[],"next_batch_at":0.0,"failures":0,"finished":null,"why":""},"extras":"{}","logical":0}');
INSERT INTO "memory" VALUES('gates','"workers"','{"partition":"workers","open":true,"set_at":1700000008.6999993,"confirmed":true,"yielded":null,"why":"partition workers is open: its groups have what they need [gate.open] (group workers is SystemUpdating with 6 nodes, minimum 1, target 8)"}');
INSERT INTO "memory" VALUES('asked','"down:update:abcdef012345-8-0"','1700000027.0');
INSERT INTO "memory" VALUES('asked','"down:update:abcdef012345-9-0"','1700000027.0');
INSERT INTO "memory" VALUES('asked','"terminate:abcdef012345-8:i-7"','1700000027.1');
INSERT INTO "memory" VALUES('asked','"terminate:abcdef012345-9:i-8"','1700000027.1');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-8-1:1700000027.200"','1700000027.1999998');
INSERT INTO "memory" VALUES('asked','"launch:abcdef012345-9-1:1700000027.200"','1700000027.1999998');
INSERT INTO "memory" VALUES('looked','','1700000027.1999998');
INSERT INTO "memory" VALUES('slots','"workers-7"','{"node":"workers-7","group":"workers","logical":"abcdef012345-8","step":"provision","entered":1700000028.2999988,"created":1700000000.0,"why":{"rule":"rollout.renew","text":"workers-7 gets the version of the software update of workers","evidence":["made from the default image, update 0"]},"purpose":"stay","instance":"i-9","version":{"image":"","release":"v1","serial":10},"launches":1,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000027.1999998,"served":1700000008.6999993,"updated":null,"has_served":true}');
INSERT INTO "memory" VALUES('slots','"workers-8"','{"node":"workers-8","group":"workers","logical":"abcdef012345-9","step":"provision","entered":1700000028.2999988,"created":1700000000.0,"why":{"rule":"rollout.renew","text":"workers-8 gets the version of the software update of workers","evidence":["made from the default image, update 0"]},"purpose":"stay","instance":"i-10","version":{"image":"","release":"v1","serial":10},"launches":1,"tries":0,"hitch":"none","trouble":"","next_try":0.0,"deadline":null,"launched":1700000027.1999998,"served":1700000008.6999993,"updated":null,"has_served":true}');
CREATE INDEX journal_key ON journal ("key");
CREATE INDEX journal_outcome_at ON journal (outcome_at);
CREATE INDEX events_node ON events (node, seq);
CREATE INDEX events_job ON events (job, seq);
CREATE INDEX ledger_begun ON ledger (begun);
CREATE INDEX ledger_job ON ledger (job);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('journal',8);
INSERT INTO "sqlite_sequence" VALUES('events',15);
COMMIT;
