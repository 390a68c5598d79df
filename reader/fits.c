// Whether a job would start, by Slurm's own will-run test.
//
// It is asked about a copy of the job that stands before all others: the test
// of the job itself adds the time of all that waits before it. The test of a
// copy takes a job number each time (22.05 to 26.05).
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "reader.h"

enum { NOW_S = 1, LONGEST_LIST = 4 * LONGEST_LINE, TRIES = 2 };
// The highest priority that Slurm takes for one that was set.
#define FIRST (NO_VAL - 1)

// The library has it, the header does not; where it has none the answer is left
// to the end of the process.
extern void slurm_free_will_run_response_msg(will_run_response_msg_t *told)
	__attribute__((weak));

enum state { NOW, LATER, NEVER, UNKNOWN };
static const char *const states[] = {"now", "later", "never", "unknown"};

struct question {
	uint32_t job;
	uint32_t nodes;	   // at least; 0: as many as the job asks for
	char *reservation; // NULL: none
	char *excluded;	   // NULL: none but the job's own
};

struct answer {
	enum state state;
	long seconds; // until it starts
	char *nodes;  // NULL: none
};

static uint16_t some16(uint16_t value)
{
	return value ? value : NO_VAL16;
}

static bool is_set(const char *text)
{
	return text && *text;
}

static bool some_per_node(const slurm_job_info_t *job)
{
	bool has_tasks =
		job->ntasks_per_node && job->ntasks_per_node != NO_VAL16;

	return has_tasks || is_set(job->tres_per_node);
}

// Of a job that waits for another run Slurm tells the nodes of its last one,
// also where it had more than it asked for, or lost some (22.05.8): its TRES
// are what it asks for.
static uint32_t least_nodes(const slurm_job_info_t *job, bool waits)
{
	const char *word = waits ? job->tres_req_str : NULL;
	unsigned int asked = 0;

	while (word && sscanf(word, "node=%u", &asked) != 1) {
		word = strchr(word, ',');
		word = word ? word + 1 : NULL;
	}
	if (!asked)
		return job->num_nodes;
	if (job->ntasks_per_node && job->ntasks_per_node != NO_VAL16 &&
	    job->num_tasks != NO_VAL) {
		unsigned int by_tasks =
			(job->num_tasks + job->ntasks_per_node - 1) /
			job->ntasks_per_node;
		asked = by_tasks > asked ? by_tasks : asked;
	}
	return asked;
}

// A job that waits and asks for tasks alone (-n 8) takes as many nodes as it
// needs: Slurm tells the fewest.
static uint32_t most_nodes(const slurm_job_info_t *job, bool waits)
{
	if (job->max_nodes)
		return job->max_nodes;
	return waits && job->num_tasks > job->num_nodes && !some_per_node(job)
		       ? NO_VAL
		       : job->num_nodes;
}

// What the job asks for. Of a job that runs Slurm tells what it has, not what
// it asked for.
static void describe(job_desc_msg_t *wish, slurm_job_info_t *job)
{
	bool waits = (job->job_state & JOB_STATE_BASE) == JOB_PENDING;
	uint32_t per_task = job->cpus_per_task && job->cpus_per_task != NO_VAL16
				    ? job->cpus_per_task
				    : 1;

	wish->min_nodes = least_nodes(job, waits);
	wish->max_nodes = most_nodes(job, waits);
	if (wish->max_nodes < wish->min_nodes)
		wish->max_nodes = wish->min_nodes;
	wish->min_cpus = waits ? job->num_cpus : job->num_tasks * per_task;
	if (waits && job->max_cpus)
		wish->max_cpus = job->max_cpus;
	wish->pn_min_memory = job->pn_min_memory;
	wish->pn_min_cpus = some16(job->pn_min_cpus);
	wish->pn_min_tmp_disk = job->pn_min_tmp_disk;
	wish->ntasks_per_node = some16(job->ntasks_per_node);
	wish->cpus_per_task = some16(job->cpus_per_task);
	wish->sockets_per_node = job->sockets_per_node;
	wish->cores_per_socket = job->cores_per_socket;
	wish->threads_per_core = job->threads_per_core;
	wish->core_spec = job->core_spec;
	wish->contiguous = job->contiguous;
	wish->bitflags = job->bitflags & SPREAD_JOB;
	wish->shared = job->shared;
	wish->req_switch = job->req_switch;
	wish->wait4switch = job->wait4switch;
	wish->time_limit = job->time_limit;
	wish->time_min = job->time_min;
	wish->features = job->features;
	wish->licenses = job->licenses;
	wish->req_nodes = job->req_nodes;
	wish->tres_per_job = job->tres_per_job;
	wish->tres_per_node = job->tres_per_node;
	wish->tres_per_socket = job->tres_per_socket;
	wish->tres_per_task = job->tres_per_task;
	// Without a number of tasks Slurm says of GRES for each task that no
	// node ever has them.
	if (is_set(job->tres_per_task) && job->num_tasks)
		wish->num_tasks = job->num_tasks;
	wish->cpus_per_tres = job->cpus_per_tres;
	wish->mem_per_tres = job->mem_per_tres;
	wish->network = job->network;
}

static bool is_running(const slurm_job_info_t *job)
{
	return (job->job_state & JOB_STATE_BASE) == JOB_RUNNING;
}

// One more like a job that runs, on fewer nodes: a replica of an elastic run.
static void make_smaller(job_desc_msg_t *wish, uint32_t nodes)
{
	if (wish->min_cpus != NO_VAL)
		wish->min_cpus = wish->min_cpus * nodes / wish->min_nodes;
	wish->min_nodes = wish->max_nodes = nodes;
}

static bool is_about_places(int error)
{
	switch (error) {
	case ESLURM_NODES_BUSY:
	case ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE:
	case ESLURM_REQUESTED_NODES_NOT_IN_PARTITION:
	case ESLURM_REQUESTED_PART_CONFIG_UNAVAILABLE:
	case ESLURM_TOO_MANY_REQUESTED_CPUS:
	case ESLURM_INVALID_FEATURE:
	case ESLURM_INVALID_GRES:
	case ESLURM_NODE_NOT_AVAIL:
	case ESLURM_RESERVATION_BUSY:
		return true;
	default:
		return false;
	}
}

static struct answer test(job_desc_msg_t *wish)
{
	will_run_response_msg_t *told = NULL;
	struct answer found = {.state = UNKNOWN};

	if (slurm_job_will_run2(wish, &told) || !told) {
		// Slurm says of a node that is required and excluded that there
		// is no such node.
		if (is_about_places(errno) ||
		    (errno == ESLURM_INVALID_NODE_NAME &&
		     is_set(wish->req_nodes)))
			found.state = NEVER;
		return found;
	}
	found.seconds = (long) (told->start_time - time(NULL));
	found.state = found.seconds <= NOW_S ? NOW : LATER;
	found.seconds = found.seconds < 0 ? 0 : found.seconds;
	found.nodes = is_set(told->node_list) ? strdup(told->node_list) : NULL;
	if (slurm_free_will_run_response_msg)
		slurm_free_will_run_response_msg(told);
	return found;
}

// The better one; the other is freed.
static struct answer better(struct answer one, struct answer other)
{
	bool is_first =
		one.state < other.state ||
		(one.state == other.state && one.seconds <= other.seconds);
	free(is_first ? other.nodes : one.nodes);
	return is_first ? one : other;
}

// In each of its partitions, and the best of that: Slurm's test looks at one
// alone.
static struct answer test_everywhere(job_desc_msg_t *wish)
{
	char *all = wish->partition ? strdup(wish->partition) : NULL,
	     *rest = NULL;
	struct answer best = {.state = UNKNOWN};

	if (!all)
		return test(wish);
	for (char *part = strtok_r(all, ",", &rest); part;
	     part = strtok_r(NULL, ",", &rest)) {
		wish->partition = part;
		best = better(test(wish), best);
	}
	wish->partition = NULL;
	free(all);
	return best;
}

// As its user, who alone may be let into its partition, or have an account at
// all; a reservation of ours is for us alone. Where Slurm refuses that, as
// we are, and as root.
static struct answer ask_whole(job_desc_msg_t wish, slurm_job_info_t *job,
			       const struct question *about)
{
	uint32_t askers[] = {job->user_id, geteuid(), 0};
	struct answer found = {.state = UNKNOWN};

	for (size_t i = about->reservation ? 1 : 0;
	     i < sizeof(askers) / sizeof(*askers); i++) {
		bool is_user = i == 0;
		wish.user_id = askers[i];
		wish.group_id = is_user ? job->group_id : 0;
		wish.account = is_user ? job->account : NULL;
		wish.qos = is_user ? job->qos : NULL;
		wish.partition = job->partition;
		found = test_everywhere(&wish);
		if (found.state != UNKNOWN)
			return found;
	}
	return found;
}

static uint32_t count_of(const char *nodes)
{
	__auto_type list = slurm_hostlist_create(nodes);
	int count = slurm_hostlist_count(list);
	slurm_hostlist_destroy(list);
	return count > 0 ? (uint32_t) count : 0;
}

// `named`, and of `others` so many that it is `count`.
static char *filled(const char *named, const char *others, uint32_t count)
{
	__auto_type list = slurm_hostlist_create(named);
	__auto_type more = slurm_hostlist_create(others);

	for (char *node = slurm_hostlist_shift(more); node;
	     node = slurm_hostlist_shift(more)) {
		if ((uint32_t) slurm_hostlist_count(list) < count &&
		    slurm_hostlist_find(list, node) < 0)
			slurm_hostlist_push(list, node);
		free(node);
	}
	// Not its _malloc, which later versions have no more.
	char *all = calloc(1, LONGEST_LIST);
	if (all && slurm_hostlist_ranged_string(list, LONGEST_LIST, all) < 0)
		strcpy(all, strlen(named) < LONGEST_LIST ? named : "");
	slurm_hostlist_destroy(list);
	slurm_hostlist_destroy(more);
	return all;
}

// Slurm's test of a job that names nodes looks at these alone, and says of one
// that needs more that it never fits; Slurm starts it (22.05.8; sbatch
// --test-only says so, too). So it is asked about what is less: about the named
// nodes alone, and about any nodes; what never starts then never starts at all.
// Else about the named nodes and some of those that Slurm would take.
static struct answer ask_by_parts(const job_desc_msg_t *wish,
				  slurm_job_info_t *job,
				  const struct question *about)
{
	job_desc_msg_t named = *wish, any = *wish, all = *wish;
	static char without[3 * LONGEST_LINE];
	enum state least;

	named.min_nodes = named.max_nodes = count_of(wish->req_nodes);
	named.min_cpus = named.min_nodes;
	named.max_cpus = NO_VAL;
	named.tres_per_job = NULL;
	struct answer found = ask_whole(named, job, about);
	if (found.state == NEVER || found.state == UNKNOWN)
		return found;
	least = found.state;
	any.req_nodes = NULL;
	for (int tries = 0; tries < TRIES; tries++) {
		free(found.nodes);
		found = ask_whole(any, job, about);
		if (!tries && (found.state == NEVER || found.state == UNKNOWN))
			return found;
		if (!tries && found.state > least)
			least = found.state;
		if (found.state > least || !found.nodes ||
		    strlen(found.nodes) >= LONGEST_LINE)
			break;
		all.req_nodes =
			filled(wish->req_nodes, found.nodes, wish->min_nodes);
		struct answer whole = ask_whole(all, job, about);
		free(all.req_nodes);
		if (whole.state == least) {
			free(found.nodes);
			return whole;
		}
		free(whole.nodes);
		// Others than those, next.
		snprintf(without, sizeof(without), "%s%s%s",
			 is_set(wish->exc_nodes) ? wish->exc_nodes : "",
			 is_set(wish->exc_nodes) ? "," : "", found.nodes);
		any.exc_nodes = without;
	}
	found.state = UNKNOWN;
	return found;
}

static bool names_some_nodes(const job_desc_msg_t *wish)
{
	return is_set(wish->req_nodes) &&
	       count_of(wish->req_nodes) < wish->min_nodes;
}

static struct answer ask_named(job_desc_msg_t wish, slurm_job_info_t *job,
			       const struct question *about)
{
	struct answer found = ask_whole(wish, job, about);

	if (found.state == NEVER && names_some_nodes(&wish)) {
		free(found.nodes);
		found = ask_by_parts(&wish, job, about);
	}
	return found;
}

// Of `a&[b|c]` one alternative is for all nodes; Slurm's test lets each node
// have another (22.05.8). So each is asked about by itself, as `a&b` and `a&c`.
static struct answer ask_any(job_desc_msg_t wish, slurm_job_info_t *job,
			     const struct question *about)
{
	const char *text = wish.features,
		   *open = text ? strchr(text, '[') : NULL,
		   *close = open ? strchr(open, ']') : NULL;
	struct answer best = {.state = UNKNOWN};
	bool is_known = true;

	if (!close || memchr(open, '&', (size_t) (close - open)))
		return ask_named(wish, job, about);
	char *all = strndup(open + 1, (size_t) (close - open - 1)),
	     *rest = NULL;
	for (char *one = strtok_r(all, "|", &rest); one && best.state != NOW;
	     one = strtok_r(NULL, "|", &rest)) {
		char *alone = NULL;
		if (asprintf(&alone, "%.*s%s%s", (int) (open - text), text, one,
			     close + 1) < 0)
			break;
		wish.features = alone;
		struct answer found = ask_any(wish, job, about);
		is_known &= found.state != UNKNOWN;
		best = better(found, best);
		free(alone);
	}
	free(all);
	if (best.state != NOW && !is_known)
		best.state = UNKNOWN;
	return best;
}

// The test says of some jobs that ask for switches that they never fit, most
// often through a reservation of ours, or that they start later, and Slurm
// starts them at once (22.05.8). Without the reservation they may start; a no
// is sure only where the test says no without the switches, too.
static struct answer ask_of_switches(job_desc_msg_t wish, slurm_job_info_t *job,
				     const struct question *about)
{
	struct answer found = ask_any(wish, job, about);
	enum state said = found.state;
	job_desc_msg_t loose = wish;

	if (said == NEVER) {
		struct question open = *about;
		open.reservation = wish.reservation = NULL;
		free(found.nodes);
		found = ask_whole(wish, job, &open);
	}
	if (found.state == NOW || said == UNKNOWN)
		return found;
	loose.req_switch = 0;
	struct answer least = ask_any(loose, job, about);
	bool is_sure =
		least.state == NEVER || (least.state == LATER && said == LATER);
	free(least.nodes);
	found.state = is_sure ? said : UNKNOWN;
	return found;
}

static struct answer ask(job_desc_msg_t wish, slurm_job_info_t *job,
			 const struct question *about)
{
	struct answer found = wish.req_switch
				      ? ask_of_switches(wish, job, about)
				      : ask_any(wish, job, about);

	// Between excluded nodes Slurm may never start a job of contiguous
	// nodes of which its test says that it starts (22.05.8).
	if (found.state == NOW && wish.contiguous && wish.min_nodes > 1 &&
	    is_set(wish.exc_nodes))
		found.state = UNKNOWN;
	return found;
}

// One thing that the job asks for, and the same wish without it.
struct part {
	const char *name;
	bool (*drop)(job_desc_msg_t *wish);
};

static bool drop_text(char **text)
{
	bool was = is_set(*text);
	*text = NULL;
	return was;
}

static bool drop_features(job_desc_msg_t *wish)
{
	return drop_text(&wish->features);
}

static bool drop_gres(job_desc_msg_t *wish)
{
	bool was = drop_text(&wish->tres_per_job);
	was |= drop_text(&wish->tres_per_node);
	was |= drop_text(&wish->tres_per_socket);
	was |= drop_text(&wish->tres_per_task);
	was |= drop_text(&wish->cpus_per_tres);
	was |= drop_text(&wish->mem_per_tres);
	return was;
}

static bool drop_nodes(job_desc_msg_t *wish)
{
	return drop_text(&wish->req_nodes);
}

static bool drop_memory(job_desc_msg_t *wish)
{
	bool was = wish->pn_min_memory && wish->pn_min_memory != NO_VAL64;
	wish->pn_min_memory = 1;
	return was;
}

static const struct part parts[] = {
	{"features", drop_features},
	{"gres", drop_gres},
	{"nodelist", drop_nodes},
	{"memory", drop_memory},
};

// Without what it would start now.
static const char *missing(const job_desc_msg_t *wish, slurm_job_info_t *job,
			   const struct question *about)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		job_desc_msg_t less = *wish;
		if (!parts[i].drop(&less))
			continue;
		struct answer found = ask(less, job, about);
		free(found.nodes);
		if (found.state == NOW)
			return parts[i].name;
	}
	return NOTHING;
}

// Slurm's test does not look at them. Of `x:2,y` all are needed; of `x|y` one,
// which is not looked into.
static bool has_licenses(const slurm_job_info_t *job)
{
	license_info_msg_t *told = NULL;
	bool has_all = true;

	if (!is_set(job->licenses) || strchr(job->licenses, '|') ||
	    is_running(job))
		return true;
	if (slurm_load_licenses(0, &told, SHOW_ALL) || !told)
		return true;
	char *all = strdup(job->licenses), *rest = NULL;
	for (char *word = strtok_r(all, ",;", &rest); word;
	     word = strtok_r(NULL, ",;", &rest)) {
		char *count = strchr(word, ':');
		unsigned long wanted = count ? strtoul(count + 1, NULL, 10) : 1;
		if (count)
			*count = '\0';
		for (uint32_t i = 0; i < told->num_lic; i++)
			if (told->lic_array[i].name &&
			    !strcmp(told->lic_array[i].name, word))
				has_all &=
					wanted <= told->lic_array[i].available;
	}
	free(all);
	slurm_free_license_info_msg(told);
	return has_all;
}

static void tell(FILE *out, struct answer found, const char *lacks)
{
	fprintf(out, "fits %s %ld %s %s\n", states[found.state], found.seconds,
		lacks, found.nodes ? found.nodes : NOTHING);
	fflush(out);
}

static void answer_for(FILE *out, slurm_job_info_t *job,
		       const struct question *about)
{
	static char *environment[] = {"STEWARD_ASKS=1", NULL};
	char excluded[2 * LONGEST_LINE] = "";
	job_desc_msg_t wish;

	slurm_init_job_desc_msg(&wish);
	describe(&wish, job);
	wish.name = "steward-ask";
	wish.work_dir = "/";
	wish.environment = environment;
	wish.env_size = 1;
	wish.priority = FIRST;
	if (about->nodes && about->nodes < wish.min_nodes && is_running(job))
		make_smaller(&wish, about->nodes);
	if (about->nodes > wish.min_nodes)
		wish.min_nodes = about->nodes;
	if (about->nodes > wish.max_nodes)
		wish.max_nodes = about->nodes;
	wish.reservation = about->reservation	    ? about->reservation
			   : is_set(job->resv_name) ? job->resv_name
						    : NULL;
	if (is_set(job->exc_nodes) && strlen(job->exc_nodes) < LONGEST_LINE)
		strcat(excluded, job->exc_nodes);
	if (is_set(about->excluded)) {
		strcat(excluded, *excluded ? "," : "");
		strcat(excluded, about->excluded);
	}
	wish.exc_nodes = *excluded ? excluded : NULL;

	struct answer found = ask(wish, job, about);
	bool waits = found.state == LATER || found.state == NEVER;
	if (found.state != UNKNOWN && !has_licenses(job)) {
		found.state = found.state == NOW ? LATER : found.state;
		tell(out, found, "licenses");
	} else {
		tell(out, found, waits ? missing(&wish, job, about) : NOTHING);
	}
	free(found.nodes);
}

static void answer(FILE *out, const struct question *about)
{
	job_info_msg_t *told = NULL;

	if (load_job(&told, about->job, SHOW_ALL | SHOW_DETAIL) || !told) {
		tell(out, (struct answer){.state = UNKNOWN}, NOTHING);
		return;
	}
	slurm_job_info_t *job = NULL;
	for (uint32_t i = 0; i < told->record_count; i++)
		if (told->job_array[i].job_id == about->job)
			job = &told->job_array[i];
	// Of a run that is being cleaned up Slurm may have taken nodes out.
	if (job && !(job->job_state & JOB_COMPLETING))
		answer_for(out, job, about);
	else
		tell(out, (struct answer){.state = UNKNOWN}, NOTHING);
	slurm_free_job_info_msg(told);
}

// Five words and no more; false for any other line.
bool answer_fits(FILE *out, char *words[], size_t count)
{
	struct question about;

	if (count != 5 || !is_number(words[1], &about.job) || !about.job ||
	    !is_number(words[2], &about.nodes))
		return false;
	about.reservation = strcmp(words[3], NOTHING) ? words[3] : NULL;
	about.excluded = strcmp(words[4], NOTHING) ? words[4] : NULL;
	answer(out, &about);
	return true;
}
