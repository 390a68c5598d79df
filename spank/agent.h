/*
 * The way to the node's agent: a unix socket, with a deadline on everything.
 * Whatever goes wrong is "no answer", and the caller goes on as if the shim
 * were not there.
 */
#ifndef STEWARD_AGENT_H
#define STEWARD_AGENT_H

#include <stdbool.h>

#include "config.h"
#include "wire.h"

/* To connect and ask. */
#define AGENT_SEND_MS 200
/* Between two lines of a waiting agent. */
#define AGENT_SILENCE_MS 3000
/* An agent that is gone comes back soon when it is only restarted: about ten
 * seconds in all for each question. */
#define AGENT_REDIALS	50
#define AGENT_REDIAL_MS 200

/*
 * Something else to watch while waiting: when fd becomes readable, abandon() is
 * called, and true ends the wait.
 */
struct agent_watch {
	int fd;
	bool (*abandon)(void *arg);
	void *arg;
};

/*
 * Ask what shall become of a failed script or step, and wait for the decision:
 * true with a verb of WIRE_RETRY (steps only), WIRE_REQUEUE or WIRE_STOP.
 * False after config->hold_s, after AGENT_SILENCE_MS without a line, when the
 * agent is not there, leaves, or talks nonsense, and when watch (may be NULL)
 * says so; *why then says which.
 *
 * An agent that leaves after it said WIRE_WAIT is asked the same again.
 * has_met: one was there before, so that it is also waited for when it is not
 * there now.
 */
bool agent_ask(const struct config *config, const struct wire_ask *ask,
	       bool has_met, const struct agent_watch *watch,
	       struct wire_answer *answer, const char **why);

#endif
