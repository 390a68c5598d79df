"""Tests of jobs that come back, in the order of a failure's way (`policy/job/decide.py` has the rules in their order).

1. Who is resumed: `opting_in`, `whereabouts`, `site_default`, `parts`.
2. A failure is gathered: `ask`, `reach`, `other_users`, `broken_launch`, `hang`, `suspension`.
3. The rules: `decide` has each; in stories `time_limit`, `without_evidence`, `budget`, `no_progress`.
4. Without a shim: `requeued`, `ended`, `no_script`, `late_requeue`, `late_evidence`, `own_turn`.
5. The ruling is carried out: `turn_share`, `dying`, `let_go`, `exclude`, `nudge`, `back_off`, `unbegun`.
6. Its place is kept: `keep`, `fits`, `siblings`, `give_back`.
7. What is told of it: `comment`, `ledger`.
"""
