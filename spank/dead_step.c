#include "dead_step.h"

#include <slurm/slurm.h>
#include <slurm/slurm_version.h>

#define IS_FROM(major, minor) \
	(SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

#if !IS_FROM(22, 5) || IS_FROM(23, 11)

void dead_step_end(uint32_t job)
{
	(void) job;
}

#else

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * slurmctld counts a node of a step out when its slurmstepd says that it is
 * done, or when the node is DOWN. The last one ends the step, but for these
 * releases only in the first case. Told once more of a node that it has counted
 * out, it ends the step as it should have ("Probably a RPC was resent"). The
 * user's srun may say so; no call of slurm.h does, and so this is how these
 * releases, all of 22.05 and 23.02, of which no more will come, lay it out.
 */
#define REQUEST_STEP_COMPLETE 5016
#define KILLED		      9 /* how Slurm itself says that a node failed */

struct step_complete {
	uint32_t first;
	uint32_t last;
	slurm_step_id_t step;
	uint32_t status;
	void *accounting;
};

struct message {
	struct sockaddr_storage address;
	void *credential;
	int auth_index;
	uid_t auth_uid;
	bool auth_uid_set;
	uid_t restrict_uid;
	bool restrict_uid_set;
	uint32_t body_offset;
	void *buffer;
	void *connection;
	int fd;
	void *data;
	uint32_t data_size;
	uint16_t flags;
	uint8_t hash_index;
	uint16_t type;
	uint16_t protocol;
	struct {
		uint16_t count;
		uint16_t init;
		char *nodes;
		uint32_t timeout;
		uint16_t width;
	} forward;
	void *forwarded;
	struct sockaddr_storage origin;
	void *answers;
};

/* srun has them; what loads us elsewhere may not. */
extern void slurm_msg_t_init(struct message *message) __attribute__((weak));
extern int slurm_send_recv_controller_rc_msg(struct message *message,
					     int *answer, void *cluster)
	__attribute__((weak));
#pragma weak slurm_allocation_lookup
#pragma weak slurm_free_resource_allocation_response_msg
#pragma weak slurm_get_job_steps
#pragma weak slurm_free_job_step_info_response_msg
#pragma weak slurm_hostlist_create
#pragma weak slurm_hostlist_destroy
#pragma weak slurm_hostlist_find
#pragma weak slurm_hostlist_shift

static bool _is_srun(void)
{
	return slurm_msg_t_init && slurm_send_recv_controller_rc_msg &&
	       slurm_allocation_lookup &&
	       slurm_free_resource_allocation_response_msg &&
	       slurm_get_job_steps && slurm_free_job_step_info_response_msg &&
	       slurm_hostlist_create && slurm_hostlist_destroy &&
	       slurm_hostlist_find && slurm_hostlist_shift;
}

static void _say_again(const job_step_info_t *step, uint32_t rank)
{
	struct step_complete told = {.first = rank,
				     .last = rank,
				     .step = step->step_id,
				     .status = KILLED};
	struct message message;
	int answer;

	slurm_msg_t_init(&message);
	message.type = REQUEST_STEP_COMPLETE;
	message.data = &told;
	(void) slurm_send_recv_controller_rc_msg(&message, &answer, NULL);
}

/* A node that the job has no more is counted out of its steps. */
static void _look_at(const job_step_info_t *step, hostlist_t left)
{
	hostlist_t nodes = slurm_hostlist_create(step->nodes);
	char *node;

	if (!nodes)
		return;
	for (uint32_t rank = 0; (node = slurm_hostlist_shift(nodes)); rank++) {
		if (slurm_hostlist_find(left, node) < 0)
			_say_again(step, rank);
		free(node);
	}
	slurm_hostlist_destroy(nodes);
}

static void _look_at_all(uint32_t job, const char *nodes)
{
	job_step_info_response_msg_t *steps = NULL;
	hostlist_t left;

	if (slurm_get_job_steps(0, job, NO_VAL, &steps, SHOW_ALL) || !steps)
		return;
	left = slurm_hostlist_create(nodes);
	for (uint32_t i = 0; left && i < steps->job_step_count; i++) {
		const job_step_info_t *step = &steps->job_steps[i];

		if (step->nodes &&
		    step->step_id.step_id < SLURM_MAX_NORMAL_STEP_ID)
			_look_at(step, left);
	}
	if (left)
		slurm_hostlist_destroy(left);
	slurm_free_job_step_info_response_msg(steps);
}

static void _end(uint32_t job)
{
	resource_allocation_response_msg_t *allocation = NULL;

	if (slurm_allocation_lookup(job, &allocation) || !allocation)
		return;
	if (allocation->node_list)
		_look_at_all(job, allocation->node_list);
	slurm_free_resource_allocation_response_msg(allocation);
}

/* In a process of its own: whatever happens to it, the step goes on. */
static pid_t _begin(uint32_t job, int ends[2])
{
	pid_t supervisor = getpid();
	pid_t child = fork();

	if (child)
		return child;
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() == supervisor)
		_end(job);
	close(ends[1]);
	_exit(EXIT_SUCCESS);
}

void dead_step_end(uint32_t job)
{
	struct pollfd over = {.events = POLLIN};
	int ends[2];
	pid_t child;

	if (!_is_srun() || pipe2(ends, O_CLOEXEC))
		return;
	child = _begin(job, ends);
	close(ends[1]);
	over.fd = ends[0];
	if (child > 0) {
		(void) poll(&over, 1, DEAD_STEP_MS);
		(void) kill(child, SIGKILL);
		(void) waitpid(child, NULL, 0);
	}
	close(ends[0]);
}

#endif
