#include "elastic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>

#include "sbatch_words.h"

#define CONTROL	 "SLURM_SPANK_"
#define ARGS_MAX 8192
#define TEXT_MAX 512

static const char *const variables[] = {
	ELASTIC_ENV,	  ELASTIC_ENV_ROLE,    ELASTIC_ENV_RUN,
	ELASTIC_ENV_ARGS, ELASTIC_ENV_ADDRESS, ELASTIC_ENV_TOKEN,
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

static bool submits_replica;

static void _unset(const char *name)
{
	if (unsetenv(name))
		slurm_error("steward: cannot unset %s: %s", name,
			    strerror(errno));
}

bool elastic_forget_outer_job(void)
{
	submits_replica = getenv(ELASTIC_ENV_SUBMIT) != NULL;
	_unset(ELASTIC_ENV_SUBMIT);
	for (size_t i = 0; i < VARIABLES; i++) {
		char control[64];

		(void) snprintf(control, sizeof(control), CONTROL "%s",
				variables[i]);
		_unset(control);
		if (!submits_replica)
			_unset(variables[i]);
	}
	return submits_replica;
}

bool elastic_is_replica(void)
{
	return submits_replica;
}

static bool _refuse(const char *text, const char *why)
{
	slurm_error("steward: --elastic: '%.64s' %s", text, why);
	return false;
}

/* The value of a word, or of the one after it; NULL: this is another one. */
static const char *_value(const struct sbatch_words *words, size_t at,
			  const char *option, const char *letter)
{
	const char *word = words->list[at];
	const char *is = strchr(word, '=');

	if (letter && !strncmp(word, letter, 2))
		return word[2] ? word + 2 : words->list[at + 1];
	if (strncmp(word, "--", 2) ||
	    !sbatch_word_is(word, option, strlen(option)))
		return NULL;
	return is ? is + 1 : words->list[at + 1];
}

/* The least number of nodes that the user asks for; 0: not said, or not as a
 * plain number. */
static long _nodes(const struct sbatch_words *words)
{
	long nodes = 0;

	for (size_t i = 0; i < words->count; i++) {
		const char *value = _value(words, i, "--nodes", "-N");
		char *end;

		if (!value)
			continue;
		nodes = strtol(value, &end, 10);
		if (end == value || (*end && *end != '-'))
			nodes = 0;
	}
	return nodes;
}

static const char array_why[] = "is not for a job array: submit each task as a "
				"job of its own";

/* Jobs of another shape than one job with one script. */
static const char *_shape(const struct sbatch_words *words)
{
	if (getenv("SBATCH_ARRAY_INX"))
		return array_why;
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->list[i];

		if (!strcmp(word, ":") || !strcmp(word, "hetjob") ||
		    !strcmp(word, "packjob"))
			return "is not for a heterogeneous job: its components "
			       "start and end together";
		if (_value(words, i, "--array", "-a"))
			return array_why;
	}
	return NULL;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
#define free_conf slurm_free_conf
#else
#define free_conf slurm_free_ctl_conf
#endif

/* Switches that give each job a network of its own. */
static void _warn_of_switch(void)
{
	static const char *const closed[] = {"switch/hpe_slingshot",
					     "switch/nvidia_imex"};
	slurm_conf_t *conf = NULL;

	if (slurm_load_ctl_conf((time_t) 0, &conf))
		return;
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
		if (conf->switch_type && !strcmp(conf->switch_type, closed[i]))
			slurm_info("steward: --elastic: with SwitchType=%s "
				   "traffic between jobs may be slow or "
				   "refused: the nodes that a run gains are "
				   "in another job",
				   closed[i]);
	}
	free_conf(conf);
}

bool elastic_check(const struct elastic_spec *spec)
{
	struct sbatch_words words;
	const char *why;
	long nodes;

	if (strcmp(program_invocation_short_name, "sbatch"))
		return _refuse(spec->text, "is for sbatch only");
	if (!sbatch_words_read(&words))
		return true;
	why = _shape(&words);
	nodes = _nodes(&words);
	if (!why && nodes)
		why = elastic_begins_with(spec, nodes);
	sbatch_words_free(&words);
	if (why)
		return _refuse(spec->text, why);
	_warn_of_switch();
	return true;
}

/* A word as part of a list: what is a blank, a percent sign or not printable
 * becomes %XX. */
static bool _append(char *text, size_t size, const char *word)
{
	size_t used = strlen(text);

	if (used && used + 1 < size)
		text[used++] = ' ';
	for (const char *c = word; *c; c++) {
		bool as_is = *c > 0x20 && *c < 0x7f && *c != '%';

		if (used + 4 >= size)
			return false;
		used += (size_t) snprintf(text + used, size - used,
					  as_is ? "%c" : "%%%02X",
					  (unsigned char) *c);
	}
	text[used] = '\0';
	return true;
}

static void _hand_on(spank_t spank, const char *name, const char *text)
{
	if (setenv(name, text, 1) ||
	    spank_job_control_setenv(spank, name, text, 1) != ESPANK_SUCCESS)
		slurm_error("steward: cannot hand on %s", name);
}

/* What stands in the script reaches the replica jobs with it. */
static void _publish_args(spank_t spank)
{
	char text[ARGS_MAX] = "";
	struct sbatch_words words;
	bool fits = true;

	if (!sbatch_words_read(&words))
		return;
	for (size_t i = words.typed; fits && i < words.count; i++)
		fits = _append(text, sizeof(text), words.list[i]);
	sbatch_words_free(&words);
	if (fits)
		_hand_on(spank, ELASTIC_ENV_ARGS, text);
	else
		slurm_info("steward: --elastic: sbatch's options are too long "
			   "to be handed on: nodes that the run gains get "
			   "those of the script's #SBATCH lines only");
}

void elastic_publish(spank_t spank, const struct elastic_spec *spec)
{
	if (!submits_replica) {
		_hand_on(spank, ELASTIC_ENV, spec->text);
		_hand_on(spank, ELASTIC_ENV_ROLE, "base");
		_publish_args(spank);
		return;
	}
	_hand_on(spank, ELASTIC_ENV_ROLE, "replica");
	for (size_t i = 0; i < VARIABLES; i++) {
		const char *text = getenv(variables[i]);

		if (text)
			_hand_on(spank, variables[i], text);
	}
}

static void _set(spank_t spank, const char *name, const char *text)
{
	if (spank_setenv(spank, name, text, 1) != ESPANK_SUCCESS)
		slurm_error("steward: cannot set %s", name);
}

void elastic_show(spank_t spank, unsigned int job)
{
	char text[ARGS_MAX];

	for (size_t i = 0; i < VARIABLES; i++) {
		char control[64];

		(void) snprintf(control, sizeof(control), CONTROL "%s",
				variables[i]);
		if (spank_getenv(spank, variables[i], text, sizeof(text)) ==
			    ESPANK_ENV_NOEXIST &&
		    spank_getenv(spank, control, text, sizeof(text)) ==
			    ESPANK_SUCCESS)
			_set(spank, variables[i], text);
	}
	if (spank_getenv(spank, ELASTIC_ENV_ROLE, text, sizeof(text)) !=
		    ESPANK_SUCCESS ||
	    strcmp(text, "base"))
		return;
	(void) snprintf(text, sizeof(text), "%u", job);
	_set(spank, ELASTIC_ENV_RUN, text);
}

bool elastic_is_base(spank_t spank, struct elastic_spec *spec)
{
	char text[TEXT_MAX];

	return spank_getenv(spank, ELASTIC_ENV_ROLE, text, sizeof(text)) ==
		       ESPANK_SUCCESS &&
	       !strcmp(text, "base") &&
	       spank_getenv(spank, ELASTIC_ENV, text, sizeof(text)) ==
		       ESPANK_SUCCESS &&
	       elastic_parse(text, spec, NULL);
}
