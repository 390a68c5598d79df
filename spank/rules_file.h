/*
 * The file of rules for its output that a submission names, as on HyperPod: one
 * line if the node's agent will not be able to use it. What is in the rules is
 * the agent's to judge; here only what costs nothing to see is told.
 */
#ifndef STEWARD_RULES_FILE_H
#define STEWARD_RULES_FILE_H

/* As for sbatch_words_read(). */
void rules_file_show(void);

#endif
