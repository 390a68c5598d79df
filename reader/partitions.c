#include "partitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <slurm/slurm_errno.h>

#include "reader.h"
#include "record.h"

// Slurm's type for it is a pointer in some versions.
typedef __typeof__(slurm_hostlist_create("")) hosts_t;

// The library of 26.05 has it no more: what is old is then left where it is.
extern void slurm_free_ctl_conf(slurm_conf_t *conf) __attribute__((weak));

static partition_info_msg_t *known;
static hosts_t *hosts; // of each partition
static long members;   // when others were in them than before, microseconds

static const struct {
	uint16_t state;
	const char *name;
} states[] = {
	{PARTITION_UP, "UP"},
	{PARTITION_DOWN, "DOWN"},
	{PARTITION_DRAIN, "DRAIN"},
	{PARTITION_INACTIVE, "INACTIVE"},
};

#define PARTITION_FIELDS(FIELD)                               \
	FIELD(name, put_text, part->name)                     \
	FIELD(state, put_text, state_of(part))                \
	FIELD(nodes, put_text, part->nodes)                   \
	FIELD(loaded, put_time, loaded)                       \
	FIELD(allow_qos, put_text, part->allow_qos)           \
	FIELD(deny_qos, put_text, part->deny_qos)             \
	FIELD(allow_accounts, put_text, part->allow_accounts) \
	FIELD(deny_accounts, put_text, part->deny_accounts)   \
	FIELD(own_qos, put_text, part->qos_char)              \
	FIELD(max_minutes, put_number32, part->max_time)

#define AS_NAME(name, put, value) "," #name
#define PUT(name, put, value)	  put(to, value);

static void forget(void)
{
	for (uint32_t i = 0; known && i < known->record_count; i++)
		slurm_hostlist_destroy(hosts[i]);
	free(hosts);
	if (known)
		slurm_free_partition_info_msg(known);
	known = NULL;
	hosts = NULL;
}

static bool is_text(const char *one, const char *other)
{
	return !strcmp(one ? one : "", other ? other : "");
}

static bool has_members_of(const partition_info_msg_t *told)
{
	if (!known || known->record_count != told->record_count)
		return false;
	for (uint32_t i = 0; i < told->record_count; i++) {
		const partition_info_t *was = &known->partition_array[i],
				       *is = &told->partition_array[i];
		if (!is_text(was->name, is->name) ||
		    !is_text(was->nodes, is->nodes))
			return false;
	}
	return true;
}

static long microseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

// All of them each time: Slurm says "no change", too, when a node that came or
// went with its feature changed who is in them (seen on 22.05).
const partition_info_msg_t *partitions_now(void)
{
	partition_info_msg_t *told = NULL;

	if (slurm_load_partitions(0, &told, SHOW_ALL | SHOW_LOCAL))
		return NULL;
	hosts_t *theirs = calloc(told->record_count + 1, sizeof(*theirs));
	if (!theirs) {
		slurm_free_partition_info_msg(told);
		errno = ENOMEM;
		return NULL;
	}
	if (!has_members_of(told))
		members = microseconds();
	forget();
	known = told;
	hosts = theirs;
	for (uint32_t i = 0; i < told->record_count; i++) {
		char *nodes = told->partition_array[i].nodes;
		hosts[i] = slurm_hostlist_create(nodes ? nodes : "");
	}
	return known;
}

long partitions_since(void)
{
	return members;
}

static bool append(char **list, const char *name)
{
	size_t length = *list ? strlen(*list) : 0;
	char *longer = realloc(*list, length + strlen(name) + 2);

	if (!longer)
		return false;
	if (length)
		longer[length++] = ',';
	strcpy(longer + length, name);
	*list = longer;
	return true;
}

char **partitions_by_index(const partition_info_msg_t *parts, uint32_t nodes)
{
	char **found = calloc(nodes + 1, sizeof(*found));

	for (uint32_t i = 0; found && i < parts->record_count; i++) {
		const partition_info_t *part = &parts->partition_array[i];
		const int32_t *range = part->node_inx;
		for (; range && range[0] >= 0; range += 2)
			for (int64_t at = range[0];
			     at <= range[1] && at < (int64_t) nodes; at++)
				if (!append(&found[at], part->name)) {
					free_partitions_by_index(found, nodes);
					return NULL;
				}
	}
	return found;
}

void free_partitions_by_index(char **found, uint32_t nodes)
{
	for (uint32_t i = 0; found && i < nodes; i++)
		free(found[i]);
	free(found);
}

char *partitions_of(const char *node)
{
	char *found = NULL;

	for (uint32_t i = 0; known && i < known->record_count; i++)
		if (slurm_hostlist_find(hosts[i], node) >= 0)
			append(&found, known->partition_array[i].name);
	return found;
}

static const char *state_of(const partition_info_t *part)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
		if (states[i].state == part->state_up)
			return states[i].name;
	return "UNKNOWN";
}

static void put_partition(struct records *to, const partition_info_t *part,
			  time_t loaded)
{
	PARTITION_FIELDS(PUT)
	end_record(to);
}

// When slurmctld began; 0, and errno: it did not say.
static time_t loaded_at(void)
{
	static slurm_conf_t *conf;
	slurm_conf_t *told = NULL;

	if (!slurm_load_ctl_conf(conf ? conf->last_update : 0, &told)) {
		if (conf && slurm_free_ctl_conf)
			slurm_free_ctl_conf(conf);
		conf = told;
	} else if (errno != SLURM_NO_CHANGE_IN_DATA || !conf) {
		return 0;
	}
	return conf->boot_time;
}

bool answer_partitions(FILE *out, char *words[], size_t count)
{
	struct records made;

	(void) words;
	if (count != 1)
		return false;
	time_t loaded = loaded_at();
	const partition_info_msg_t *parts = loaded ? partitions_now() : NULL;
	if (!parts || !begin_records(&made)) {
		tell_failure(out, errno);
		return true;
	}
	for (uint32_t i = 0; i < parts->record_count; i++)
		put_partition(&made, &parts->partition_array[i], loaded);
	tell_records(out, &made, "partitions", NOTHING,
		     &PARTITION_FIELDS(AS_NAME)[1]);
	return true;
}
