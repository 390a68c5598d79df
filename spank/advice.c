#include "advice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "sbatch_words.h"
#include "say.h"

/* The command's own, which has read slurm.conf. */
extern slurm_conf_t slurm_conf;
#pragma weak slurm_conf

static bool _site_appends(void)
{
	return &slurm_conf && slurm_conf.job_file_append;
}

/* salloc's shell is then on a node, beside an agent. */
static bool _shell_is_on_node(void)
{
	return &slurm_conf && slurm_conf.launch_params &&
	       strstr(slurm_conf.launch_params, "use_interactive_step");
}

static bool _says_how_to_open(void)
{
	struct sbatch_words words;
	bool found = getenv("SBATCH_OPEN_MODE") != NULL;

	if (found || !sbatch_words_read(&words))
		return true; /* where it cannot be read, nothing is said */
	for (size_t i = 0; i < words.count && !found; i++)
		found = sbatch_word_is(words.list[i], "--open-mode",
				       sizeof("--op") - 1);
	sbatch_words_free(&words);
	return found;
}

static void _of_batch(const struct resume_mode *mode)
{
	if (strstr(resume_text(mode), ",requeue=0") || _site_appends() ||
	    _says_how_to_open())
		return;
	say_info("each restart empties the job's output file: add "
		 "--open-mode=append to keep what is in it");
}

static void _of_allocation(const struct config *config)
{
	if (_shell_is_on_node() || !access(config->socket, F_OK))
		return;
	say_info("--auto-resume: no agent runs on this host, so no srun that "
		 "you start here runs again after a fault: use sbatch");
}

void advice_show(const struct config *config, const struct resume_mode *mode)
{
	if (!strcmp(program_invocation_short_name, "sbatch"))
		_of_batch(mode);
	else if (!strcmp(program_invocation_short_name, "salloc"))
		_of_allocation(config);
}
