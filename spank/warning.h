/*
 * What this site's settings keep Steward from doing for a job that asks to be
 * resumed: one line, which the agent of this machine keeps in the file
 * "warning" beside its socket.
 */
#ifndef STEWARD_WARNING_H
#define STEWARD_WARNING_H

#include "config.h"

/* Show the line to who submits. Without a file that is read at once (no agent
 * on this machine, nothing to warn of) nothing is shown. */
void warning_show(const struct config *config);

#endif
