// Jobs.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "reader.h"
#include "record.h"

enum { FLAGS = SHOW_ALL | SHOW_LOCAL };

typedef __typeof__(slurm_hostlist_create("")) hosts_t;

static const char *const bases[] = {
	[JOB_PENDING] = "PENDING",     [JOB_RUNNING] = "RUNNING",
	[JOB_SUSPENDED] = "SUSPENDED", [JOB_COMPLETE] = "COMPLETED",
	[JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
	[JOB_TIMEOUT] = "TIMEOUT",     [JOB_NODE_FAIL] = "NODE_FAIL",
	[JOB_PREEMPTED] = "PREEMPTED", [JOB_BOOT_FAIL] = "BOOT_FAIL",
	[JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
};

// In the words that Slurm's commands print.
static const struct flag flags[] = {
	{JOB_COMPLETING, "COMPLETING"},
	{JOB_CONFIGURING, "CONFIGURING"},
	{JOB_LAUNCH_FAILED, "LAUNCH_FAILED"},
	{JOB_POWER_UP_NODE, "POWER_UP_NODE"},
	{JOB_RECONFIG_FAIL, "RECONFIG_FAIL"},
	{JOB_REQUEUE, "REQUEUED"},
	{JOB_REQUEUE_FED, "REQUEUE_FED"},
	{JOB_REQUEUE_HOLD, "REQUEUE_HOLD"},
	{JOB_RESIZING, "RESIZING"},
	{JOB_RESV_DEL_HOLD, "RESV_DEL_HOLD"},
	{JOB_REVOKED, "REVOKED"},
	{JOB_SIGNALING, "SIGNALING"},
	{JOB_SPECIAL_EXIT, "SPECIAL_EXIT"},
	{JOB_STAGE_OUT, "STAGE_OUT"},
	{JOB_STOPPED, "STOPPED"},
#ifdef JOB_UPDATE_DB
	{JOB_UPDATE_DB, "JOB_UPDATE_DB"},
#endif
#ifdef JOB_EXPEDITING
	{JOB_EXPEDITING, "EXPEDITING"},
#endif
};

#ifdef EXPEDITED_REQUEUE
#define IS_EXPEDITED(job) (((job)->bitflags & EXPEDITED_REQUEUE) != 0)
#else
#define IS_EXPEDITED(job) 0
#endif
#ifdef JOB_EXCLUSIVE_NODE
#define IS_EXCLUSIVE(job) ((job)->exclusive == JOB_EXCLUSIVE_NODE)
#else
#define IS_EXCLUSIVE(job) ((job)->shared == JOB_SHARED_NONE)
#endif
#define IS_PER_CPU(job) (((job)->pn_min_memory & MEM_PER_CPU) != 0)
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(22, 11, 0)
#define SIZES_OF(job) ((job)->job_size_str)
#else
#define SIZES_OF(job) NULL
#endif

// One of the two is in the library; the header has none.
extern const char *slurm_job_reason_string(uint32_t reason)
	__attribute__((weak));
extern const char *slurm_job_state_reason_string(uint32_t reason)
	__attribute__((weak));

#define JOB_FIELDS(FIELD)                                          \
	FIELD(id, put_number, job->job_id)                         \
	FIELD(name, put_text, job->name)                           \
	FIELD(state, put_job_state, job->job_state)                \
	FIELD(user_id, put_number, job->user_id)                   \
	FIELD(reason, put_text, reason_of(job))                    \
	FIELD(described, put_text, job->state_desc)                \
	FIELD(nodes, put_text, job->nodes)                         \
	FIELD(batch_host, put_text, job->batch_host)               \
	FIELD(is_batch, put_number, job->batch_flag != 0)          \
	FIELD(restarts, put_number, job->restart_cnt)              \
	FIELD(requeue, put_number, job->requeue != 0)              \
	FIELD(exit_status, put_number32, job->exit_code)           \
	FIELD(excluded, put_text, job->exc_nodes)                  \
	FIELD(array_job_id, put_number32, job->array_job_id)       \
	FIELD(array_task, put_number32, job->array_task_id)        \
	FIELD(array_tasks, put_text, job->array_task_str)          \
	FIELD(het_job_id, put_number32, job->het_job_id)           \
	FIELD(partition, put_text, job->partition)                 \
	FIELD(account, put_text, job->account)                     \
	FIELD(node_count, put_number32, job->num_nodes)            \
	FIELD(most_nodes, put_number32, job->max_nodes)            \
	FIELD(submitted, put_time, job->submit_time)               \
	FIELD(eligible, put_time, job->eligible_time)              \
	FIELD(started, put_time, job->start_time)                  \
	FIELD(ended, put_time, job->end_time)                      \
	FIELD(preempted, put_time, job->preempt_time)              \
	FIELD(admin_comment, put_text, job->admin_comment)         \
	FIELD(comment, put_text, job->comment)                     \
	FIELD(qos, put_text, job->qos)                             \
	FIELD(limit_minutes, put_number32, job->time_limit)        \
	FIELD(reservation, put_text, job->resv_name)               \
	FIELD(priority, put_number32, job->priority)               \
	FIELD(nice, put_number, (int64_t) job->nice - NICE_OFFSET) \
	FIELD(submit_host, put_text, job->alloc_node)              \
	FIELD(expedited, put_number, IS_EXPEDITED(job))            \
	FIELD(requested, put_text, job->tres_req_str)              \
	FIELD(allocated, put_text, job->tres_alloc_str)            \
	FIELD(node_sizes, put_text, SIZES_OF(job))                 \
	FIELD(tres_per_job, put_text, job->tres_per_job)           \
	FIELD(tres_per_node, put_text, job->tres_per_node)         \
	FIELD(tasks_per_node, put_number16, job->ntasks_per_node)  \
	FIELD(tasks, put_number32, job->num_tasks)                 \
	FIELD(required, put_text, job->req_nodes)                  \
	FIELD(features, put_text, job->features)                   \
	FIELD(exclusive, put_number, IS_EXCLUSIVE(job))            \
	FIELD(memory_per_cpu, put_number, IS_PER_CPU(job))         \
	FIELD(planned, put_text, job->sched_nodes)

#define AS_NAME(name, put, value) "," #name
#define PUT(name, put, value)	  put(to, value);

int load_job(job_info_msg_t **told, uint32_t id, uint16_t show)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
	slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;
	step.job_id = id;
	return slurm_load_job(told, step, show);
#else
	return slurm_load_job(told, id, show);
#endif
}

static void put_job_state(struct records *to, uint32_t state)
{
	uint32_t base = state & JOB_STATE_BASE;
	const char *word =
		base < sizeof(bases) / sizeof(*bases) ? bases[base] : NULL;

	put_state(to, word ? word : "UNKNOWN", state & JOB_STATE_FLAGS, flags,
		  sizeof(flags) / sizeof(*flags));
}

static const char *reason_of(const slurm_job_info_t *job)
{
	if (slurm_job_state_reason_string)
		return slurm_job_state_reason_string(job->state_reason);
	if (slurm_job_reason_string)
		return slurm_job_reason_string(job->state_reason);
	return "Unknown";
}

static void put_job(struct records *to, const slurm_job_info_t *job)
{
	JOB_FIELDS(PUT)
	end_record(to);
}

static void answer_all(FILE *out, const char *stamp)
{
	time_t since = since_of(strtol(stamp, NULL, 10));
	job_info_msg_t *told = NULL;
	struct records made;
	char now[32];

	if (slurm_load_jobs(since, &told, FLAGS)) {
		if (errno == SLURM_NO_CHANGE_IN_DATA && since)
			tell_same(out, "jobs", stamp);
		else
			tell_failure(out, errno);
		return;
	}
	if (begin_records(&made)) {
		for (uint32_t i = 0; i < told->record_count; i++)
			put_job(&made, &told->job_array[i]);
		snprintf(now, sizeof(now), "%ld", (long) told->last_update);
		tell_records(out, &made, "jobs", now, &JOB_FIELDS(AS_NAME)[1]);
	} else {
		tell_failure(out, ENOMEM);
	}
	slurm_free_job_info_msg(told);
}

// The jobs of these numbers, or with `with_parts` all that Slurm tells of one
// number: the parts of a heterogeneous job, the tasks of an array.
static void answer_some(FILE *out, char *ids[], size_t count, bool with_parts)
{
	struct records made;
	int error = 0;

	if (!begin_records(&made)) {
		tell_failure(out, ENOMEM);
		return;
	}
	for (size_t i = 0; i < count && !error; i++) {
		uint32_t id = (uint32_t) strtoul(ids[i], NULL, 10);
		job_info_msg_t *told = NULL;
		if (load_job(&told, id, FLAGS)) {
			if (errno != ESLURM_INVALID_JOB_ID) // Slurm has it not
				error = errno ? errno : EIO;
			continue;
		}
		for (uint32_t at = 0; at < told->record_count; at++)
			if (with_parts || told->job_array[at].job_id == id)
				put_job(&made, &told->job_array[at]);
		slurm_free_job_info_msg(told);
	}
	if (error) {
		fclose(made.text);
		free(made.bytes);
		tell_failure(out, error);
		return;
	}
	tell_records(out, &made, with_parts ? "parts" : "job", NOTHING,
		     &JOB_FIELDS(AS_NAME)[1]);
}

static bool is_alive(const slurm_job_info_t *job)
{
	return (job->job_state & JOB_STATE_BASE) <= JOB_SUSPENDED ||
	       (job->job_state & JOB_COMPLETING);
}

static bool has_one(const slurm_job_info_t *job, char *names[], size_t count)
{
	hosts_t hosts = slurm_hostlist_create(job->nodes);
	bool found = false;

	for (size_t i = 0; hosts && i < count && !found; i++)
		found = slurm_hostlist_find(hosts, names[i]) >= 0;
	if (hosts)
		slurm_hostlist_destroy(hosts);
	return found;
}

// The jobs that have one of these nodes.
static void answer_on(FILE *out, char *names[], size_t count)
{
	job_info_msg_t *told = NULL;
	struct records made;

	if (slurm_load_jobs(0, &told, FLAGS)) {
		tell_failure(out, errno);
		return;
	}
	if (begin_records(&made)) {
		for (uint32_t i = 0; i < told->record_count; i++) {
			slurm_job_info_t *job = &told->job_array[i];
			if (job->nodes && *job->nodes && is_alive(job) &&
			    has_one(job, names, count))
				put_job(&made, job);
		}
		tell_records(out, &made, "on", NOTHING,
			     &JOB_FIELDS(AS_NAME)[1]);
	} else {
		tell_failure(out, ENOMEM);
	}
	slurm_free_job_info_msg(told);
}

bool answer_jobs(FILE *out, char *words[], size_t count)
{
	uint32_t number;

	if (!strcmp(words[0], "jobs") && count == 2) {
		answer_all(out, words[1]);
		return true;
	}
	if (!strcmp(words[0], "on")) {
		answer_on(out, words + 1, count - 1);
		return true;
	}
	for (size_t i = 1; i < count; i++)
		if (!is_number(words[i], &number))
			return false;
	if (!strcmp(words[0], "job"))
		answer_some(out, words + 1, count - 1, false);
	else if (!strcmp(words[0], "parts") && count == 2)
		answer_some(out, words + 1, 1, true);
	else
		return false;
	return true;
}
