/*
 * What the user has said to sbatch, word by word: the #SBATCH lines of his
 * script and then what he typed in front of it, which counts more.
 */
#ifndef STEWARD_SBATCH_WORDS_H
#define STEWARD_SBATCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct sbatch_words {
	char **list; /* NULL at the end */
	size_t count;
	size_t typed; /* the first one of the command line */
};

/* Valid in slurm_spank_init_post_opt, when sbatch has read its options. False,
 * with nothing to free, when /proc does not tell. */
bool sbatch_words_read(struct sbatch_words *words);
void sbatch_words_free(struct sbatch_words *words);

/* Whether the word is this long option, given as "--name" or "--name=value",
 * or shortened to at least so many characters, as getopt_long() lets it be. */
bool sbatch_word_is(const char *word, const char *option, size_t least);

#endif
