/*
 * Nodes that a step is to leave out: those of all answers so far.
 */
#ifndef STEWARD_EXCLUDE_H
#define STEWARD_EXCLUDE_H

#include "wire.h"

/*
 * Put the newest names (comma separated) before those that the list has, each
 * once. Where not all fit, as many of the others stay as do.
 */
void exclude_add(char list[static WIRE_LINE_MAX], const char *newest);

#endif
