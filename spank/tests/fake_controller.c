/*
 * What srun asks slurmctld, answered for job 12: its nodes are FAKE_LEFT now,
 * its steps 39 on n1 and n2, 40 on n2, n3 and n1. Without FAKE_LEFT nobody
 * answers; "hang" and "crash" are worse. Of any job's step the nodes are
 * FAKE_STEP_NODES.
 */
#include <signal.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct hostlist {
	char *text;
	char *rest;
};

/* A pointer to it, under the one name or the other. */
typedef typeof(slurm_hostlist_create(NULL)) names_t;

struct message;
void slurm_msg_t_init(struct message *message);
int slurm_send_recv_controller_rc_msg(struct message *message, int *answer,
				      void *cluster);

/* Where both releases that need it have these two (bytes). */
#define DATA_AT 184
#define TYPE_AT 200
#define SIZE	376

names_t slurm_hostlist_create(const char *text)
{
	names_t list = calloc(1, sizeof(*list));

	if (!list)
		abort();
	list->text = list->rest = strdup(text);
	return list;
}

char *slurm_hostlist_shift(names_t list)
{
	char *name = strsep(&list->rest, ",");

	return name ? strdup(name) : NULL;
}

int slurm_hostlist_find(names_t list, const char *name)
{
	return strstr(list->text, name) ? 0 : -1;
}

void slurm_hostlist_destroy(names_t list)
{
	free(list->text);
	free(list);
}

slurm_step_layout_t *slurm_job_step_layout_get(slurm_step_id_t *step_id)
{
	static slurm_step_layout_t layout;

	(void) step_id;
	layout.node_list = getenv("FAKE_STEP_NODES");
	return layout.node_list ? &layout : NULL;
}

void slurm_job_step_layout_free(slurm_step_layout_t *layout)
{
	(void) layout;
}

static int _load_job(job_info_msg_t **resp, uint32_t job_id)
{
	static slurm_job_info_t job;
	static job_info_msg_t found = {.record_count = 1, .job_array = &job};

	job.job_id = job_id;
	job.nodes = getenv("FAKE_LEFT");
	*resp = &found;
	return job.nodes ? SLURM_SUCCESS : SLURM_ERROR;
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
int slurm_load_job(job_info_msg_t **resp, slurm_step_id_t id, uint16_t flags)
{
	(void) flags;
	return _load_job(resp, id.job_id);
}
#else
int slurm_load_job(job_info_msg_t **resp, uint32_t job_id, uint16_t flags)
{
	(void) flags;
	return _load_job(resp, job_id);
}
#endif

void slurm_free_job_info_msg(job_info_msg_t *found)
{
	(void) found;
}

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)

int slurm_allocation_lookup(uint32_t job,
			    resource_allocation_response_msg_t **answer)
{
	static resource_allocation_response_msg_t allocation;

	allocation.node_list = getenv("FAKE_LEFT");
	if (!allocation.node_list || job != 12)
		return SLURM_ERROR;
	if (!strcmp(allocation.node_list, "hang"))
		sleep(60);
	if (!strcmp(allocation.node_list, "crash"))
		raise(SIGKILL);
	*answer = &allocation;
	return SLURM_SUCCESS;
}

void slurm_free_resource_allocation_response_msg(
	resource_allocation_response_msg_t *answer)
{
	(void) answer;
}

static char batch_nodes[] = "n3", sound_nodes[] = "n1,n2",
	    lost_nodes[] = "n2,n3,n1";
static job_step_info_t steps[] = {
	{.nodes = batch_nodes,
	 .step_id = {.job_id = 12, .step_id = SLURM_BATCH_SCRIPT}},
	{.nodes = sound_nodes, .step_id = {.job_id = 12, .step_id = 39}},
	{.nodes = lost_nodes, .step_id = {.job_id = 12, .step_id = 40}}};

int slurm_get_job_steps(time_t since, uint32_t job, uint32_t step,
			job_step_info_response_msg_t **answer, uint16_t flags)
{
	static job_step_info_response_msg_t all = {.job_step_count = 3,
						   .job_steps = steps};

	(void) since;
	(void) flags;
	if (job != 12 || step != NO_VAL)
		return SLURM_ERROR;
	*answer = &all;
	return SLURM_SUCCESS;
}

void slurm_free_job_step_info_response_msg(job_step_info_response_msg_t *answer)
{
	(void) answer;
}

void slurm_msg_t_init(struct message *message)
{
	memset((void *) message, 0, SIZE);
}

int slurm_send_recv_controller_rc_msg(struct message *message, int *answer,
				      void *cluster)
{
	struct {
		uint32_t first, last;
		slurm_step_id_t step;
		uint32_t status;
	} told;
	const char *bytes = (const char *) message;
	const void *data;
	uint16_t type;

	(void) cluster;
	memcpy(&type, bytes + TYPE_AT, sizeof(type));
	memcpy((void *) &data, bytes + DATA_AT, sizeof(data));
	memcpy(&told, data, sizeof(told));
	printf("told %u: step %u.%u, nodes %u to %u, status %u\n", type,
	       told.step.job_id, told.step.step_id, told.first, told.last,
	       told.status);
	fflush(stdout);
	*answer = 0;
	return 0;
}

#endif
