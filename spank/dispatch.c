/*
 * What Slurm calls, and where each call goes. Every function returns success
 * unless a user's own mistake is to be told to him (where Slurm would go on all
 * the same, submit.c ends the command): nothing of ours may fail a job.
 */
#include <slurm/spank.h>

#include "config.h"
#include "node.h"
#include "options.h"
#include "report.h"
#include "step.h"
#include "submit.h"

SPANK_PLUGIN(steward, 1)

static struct config config;

int slurm_spank_init(spank_t spank, int ac, char **av)
{
	switch (spank_context()) {
	case S_CTX_ALLOCATOR:
		config_read(&config, ac, av);
		submit_forget_outer_job();
		break;
	case S_CTX_LOCAL:
		config_read(&config, ac, av);
		report_adopt();
		step_supervise(&config);
		break;
	case S_CTX_REMOTE:
		config_read(&config, ac, av);
		break;
	default:
		return 0;
	}
	return options_register(spank);
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char **av)
{
	(void) ac;
	(void) av;
	switch (spank_context()) {
	case S_CTX_ALLOCATOR:
		return submit_allocator(spank, &config);
	case S_CTX_LOCAL:
		return submit_srun(spank);
	case S_CTX_REMOTE:
		node_start(spank, &config);
		return 0;
	default:
		return 0;
	}
}

int slurm_spank_local_user_init(spank_t spank, int ac, char **av)
{
	(void) ac;
	(void) av;
	report_step(spank);
	return 0;
}

int slurm_spank_task_init(spank_t spank, int ac, char **av)
{
	(void) ac;
	(void) av;
	node_task_start(spank, &config);
	return 0;
}

int slurm_spank_task_exit(spank_t spank, int ac, char **av)
{
	(void) ac;
	(void) av;
	node_task_exit(spank, &config);
	return 0;
}

int slurm_spank_exit(spank_t spank, int ac, char **av)
{
	(void) spank;
	(void) ac;
	(void) av;
	if (spank_context() == S_CTX_REMOTE)
		node_end(&config);
	return 0;
}
