#include "requeue.h"

#include <stdlib.h>

#include "sbatch_words.h"

enum said { NOTHING, YES, NO };

static enum said _word(const char *word, enum said before)
{
	if (sbatch_word_is(word, "--no-requeue", sizeof("--no-r") - 1))
		return NO;
	if (sbatch_word_is(word, "--requeue", sizeof("--req") - 1))
		return YES;
	return before;
}

bool requeue_is_refused(void)
{
	enum said said = getenv("SBATCH_NO_REQUEUE") ? NO : NOTHING;
	struct sbatch_words words;
	enum said found = NOTHING;

	if (!sbatch_words_read(&words))
		return said == NO;
	for (size_t i = 0; i < words.count; i++)
		found = _word(words.list[i], found);
	sbatch_words_free(&words);
	return (found == NOTHING ? said : found) == NO;
}
