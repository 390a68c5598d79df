"""`steward simulate`: the real policy on a simulated cluster, to try settings before they are used.

A discrete-event simulation: the clock jumps from event to event, and a plan is made only when something changed or its
`wake_at` is due. It imports the policy and the model, and does no I/O.
"""
