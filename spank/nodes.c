#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>

/* slurmstepd and sbatch load this file too, and need not have them. */
#pragma weak slurm_job_step_layout_get
#pragma weak slurm_job_step_layout_free
#pragma weak slurm_load_job
#pragma weak slurm_free_job_info_msg
#pragma weak slurm_hostlist_create
#pragma weak slurm_hostlist_shift
#pragma weak slurm_hostlist_find
#pragma weak slurm_hostlist_destroy

bool nodes_of_step(uint32_t job, uint32_t step, char nodes[NODES_MAX])
{
	slurm_step_id_t id = {
		.job_id = job, .step_id = step, .step_het_comp = NO_VAL};
	slurm_step_layout_t *layout = NULL;
	int len = -1;

	if (slurm_job_step_layout_get && slurm_job_step_layout_free)
		layout = slurm_job_step_layout_get(&id);
	if (!layout)
		return false;
	if (layout->node_list)
		len = snprintf(nodes, NODES_MAX, "%s", layout->node_list);
	slurm_job_step_layout_free(layout);
	return len > 0 && len < NODES_MAX;
}

static int _load(job_info_msg_t **found, uint32_t job)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job;
	return slurm_load_job(found, id, 0);
#else
	return slurm_load_job(found, job, 0);
#endif
}

static bool _missing(const char *nodes, const char *held, char *lost,
		     size_t size)
{
	typeof(slurm_hostlist_create(NULL)) wanted =
		slurm_hostlist_create(nodes);
	typeof(slurm_hostlist_create(NULL)) left = slurm_hostlist_create(held);
	bool found = false;
	char *node;

	while (wanted && left && !found &&
	       (node = slurm_hostlist_shift(wanted))) {
		if (slurm_hostlist_find(left, node) < 0)
			found = snprintf(lost, size, "%s", node) > 0;
		free(node);
	}
	if (wanted)
		slurm_hostlist_destroy(wanted);
	if (left)
		slurm_hostlist_destroy(left);
	return found;
}

bool nodes_lost(uint32_t job, const char *nodes, char *lost, size_t size)
{
	job_info_msg_t *found = NULL;
	bool is_lost = false;

	if (!slurm_load_job || !slurm_free_job_info_msg ||
	    !slurm_hostlist_create || !slurm_hostlist_shift ||
	    !slurm_hostlist_find || !slurm_hostlist_destroy ||
	    _load(&found, job))
		return false;
	for (uint32_t i = 0; i < found->record_count && !is_lost; i++) {
		const slurm_job_info_t *info = &found->job_array[i];

		if (info->job_id == job && info->nodes && info->nodes[0])
			is_lost = _missing(nodes, info->nodes, lost, size);
	}
	slurm_free_job_info_msg(found);
	return is_lost;
}
