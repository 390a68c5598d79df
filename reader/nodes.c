// Nodes, and the partitions that they are in.
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "partitions.h"
#include "reader.h"
#include "record.h"

#ifndef SHOW_MIXED // as Slurm does by itself later
#define SHOW_MIXED 0
#endif

enum { FLAGS = SHOW_ALL | SHOW_LOCAL | SHOW_MIXED };

static const char *const bases[] = {
	[NODE_STATE_UNKNOWN] = "UNKNOWN", [NODE_STATE_DOWN] = "DOWN",
	[NODE_STATE_IDLE] = "IDLE",	  [NODE_STATE_ALLOCATED] = "ALLOCATED",
	[NODE_STATE_ERROR] = "ERROR",	  [NODE_STATE_MIXED] = "MIXED",
	[NODE_STATE_FUTURE] = "FUTURE",
};

// In the words that scontrol prints.
static const struct flag flags[] = {
	{NODE_STATE_COMPLETING, "COMPLETING"},
	{NODE_STATE_DRAIN, "DRAIN"},
	{NODE_STATE_FAIL, "FAIL"},
	{NODE_STATE_NO_RESPOND, "NOT_RESPONDING"},
	{NODE_STATE_CLOUD, "CLOUD"},
	{NODE_STATE_DYNAMIC_FUTURE, "DYNAMIC_FUTURE"},
	{NODE_STATE_DYNAMIC_NORM, "DYNAMIC_NORM"},
	{NODE_STATE_INVALID_REG, "INVALID_REG"},
	{NODE_STATE_MAINT, "MAINTENANCE"},
	{NODE_STATE_RES, "RESERVED"},
	{NODE_STATE_PLANNED, "PLANNED"},
	{NODE_STATE_POWER_DOWN, "POWER_DOWN"},
	{NODE_STATE_POWER_UP, "POWER_UP"},
	{NODE_STATE_POWER_DRAIN, "POWER_DRAIN"},
	{NODE_STATE_POWERED_DOWN, "POWERED_DOWN"},
	{NODE_STATE_POWERING_DOWN, "POWERING_DOWN"},
	{NODE_STATE_POWERING_UP, "POWERING_UP"},
	{NODE_STATE_REBOOT_REQUESTED, "REBOOT_REQUESTED"},
	{NODE_STATE_REBOOT_ISSUED, "REBOOT_ISSUED"},
	{NODE_STATE_REBOOT_CANCEL, "REBOOT_CANCEL"},
	{NODE_RESUME, "RESUME"},
	{NODE_STATE_UNDRAIN, "UNDRAIN"},
#ifdef NODE_STATE_BLOCKED
	{NODE_STATE_BLOCKED, "BLOCKED"},
#endif
};

#define NODE_FIELDS(FIELD)                                        \
	FIELD(name, put_text, node->name)                         \
	FIELD(state, put_node_state, node->node_state)            \
	FIELD(reason, put_text, node->reason)                     \
	FIELD(reason_user, put_user, node)                        \
	FIELD(reason_at, put_time, node->reason_time)             \
	FIELD(partitions, put_text, partitions)                   \
	FIELD(features, put_text, node->features)                 \
	FIELD(active_features, put_text, node->features_act)      \
	FIELD(address, put_text, node->node_addr)                 \
	FIELD(hostname, put_text, node->node_hostname)            \
	FIELD(port, put_number16, node->port)                     \
	FIELD(cpus, put_number16, node->cpus)                     \
	FIELD(threads, put_number16, node->threads)               \
	FIELD(memory_mb, put_number, (int64_t) node->real_memory) \
	FIELD(gres, put_text, node->gres)                         \
	FIELD(boot_time, put_time, node->boot_time)               \
	FIELD(slurmd_started, put_time, node->slurmd_start_time)

#define GRES_FIELDS(FIELD)                \
	FIELD(name, put_text, node->name) \
	FIELD(used, put_text, node->gres_used)

#define AS_NAME(name, put, value) "," #name
#define PUT(name, put, value)	  put(to, value);

static void put_node_state(struct records *to, uint32_t state)
{
	uint32_t base = state & NODE_STATE_BASE;
	const char *word =
		base < sizeof(bases) / sizeof(*bases) ? bases[base] : NULL;

	put_state(to, word ? word : "UNKNOWN", state & NODE_STATE_FLAGS, flags,
		  sizeof(flags) / sizeof(*flags));
}

// Who set the reason; none for one from slurm.conf. Most have the same user:
// one look is enough for them.
static void put_user(struct records *to, const node_info_t *node)
{
	static uint32_t known;
	static char *name;

	if (!node->reason || !*node->reason || !node->reason_time) {
		put_text(to, NULL);
		return;
	}
	if (!name || known != node->reason_uid) {
		struct passwd *user = getpwuid(node->reason_uid);
		char number[16];
		snprintf(number, sizeof(number), "%u", node->reason_uid);
		free(name);
		name = strdup(user ? user->pw_name : number);
		known = node->reason_uid;
	}
	put_text(to, name);
}

static void put_node(struct records *to, const node_info_t *node,
		     const char *partitions)
{
	NODE_FIELDS(PUT)
	end_record(to);
}

static void put_gres(struct records *to, const node_info_t *node)
{
	GRES_FIELDS(PUT)
	end_record(to);
}

static void answer_all(FILE *out, const char *stamp)
{
	time_t nodes_since = 0;
	long nodes_told = 0, parts_told = 0;
	node_info_msg_t *told = NULL;
	struct records made;
	char now[64];

	if (sscanf(stamp, "%ld.%ld", &nodes_told, &parts_told) == 2)
		nodes_since = since_of(nodes_told);
	const partition_info_msg_t *parts = partitions_now();
	if (!parts) {
		tell_failure(out, errno);
		return;
	}
	// With other partitions than it was asked with, all nodes are told of.
	if (partitions_since() != parts_told)
		nodes_since = 0;
	if (slurm_load_node(nodes_since, &told, FLAGS)) {
		if (errno == SLURM_NO_CHANGE_IN_DATA && nodes_since)
			tell_same(out, "nodes", stamp);
		else
			tell_failure(out, errno);
		return;
	}
	char **partitions = partitions_by_index(parts, told->record_count);
	if (begin_records(&made) && partitions) {
		for (uint32_t i = 0; i < told->record_count; i++)
			if (told->node_array[i].name) // none: it was deleted
				put_node(&made, &told->node_array[i],
					 partitions[i]);
		snprintf(now, sizeof(now), "%ld.%ld", (long) told->last_update,
			 partitions_since());
		tell_records(out, &made, "nodes", now,
			     &NODE_FIELDS(AS_NAME)[1]);
	} else {
		tell_failure(out, ENOMEM);
	}
	free_partitions_by_index(partitions, told->record_count);
	slurm_free_node_info_msg(told);
}

static void answer_some(FILE *out, char *names[], size_t count)
{
	struct records made;
	int error = 0;

	if (!partitions_now()) {
		tell_failure(out, errno);
		return;
	}
	if (!begin_records(&made)) {
		tell_failure(out, ENOMEM);
		return;
	}
	for (size_t i = 0; i < count && !error; i++) {
		node_info_msg_t *told = NULL;
		if (slurm_load_node_single(&told, names[i], FLAGS)) {
			// A name that Slurm does not have is no record.
			if (errno != ESLURM_INVALID_NODE_NAME)
				error = errno ? errno : EIO;
			continue;
		}
		for (uint32_t at = 0; at < told->record_count; at++) {
			node_info_t *node = &told->node_array[at];
			if (!node->name || strcmp(node->name, names[i]))
				continue;
			char *partitions = partitions_of(node->name);
			put_node(&made, node, partitions);
			free(partitions);
		}
		slurm_free_node_info_msg(told);
	}
	if (error) {
		fclose(made.text);
		free(made.bytes);
		tell_failure(out, error);
		return;
	}
	tell_records(out, &made, "node", NOTHING, &NODE_FIELDS(AS_NAME)[1]);
}

// Jobs that run or clean up there have their GRES.
static bool is_idle(const node_info_t *node)
{
	return (node->node_state & NODE_STATE_BASE) == NODE_STATE_IDLE &&
	       !(node->node_state & NODE_STATE_COMPLETING);
}

// The idle nodes of which Slurm counts GRES, with what is in use.
static void answer_gres(FILE *out)
{
	node_info_msg_t *told = NULL;
	struct records made;

	if (slurm_load_node(0, &told, FLAGS | SHOW_DETAIL)) {
		tell_failure(out, errno);
		return;
	}
	if (begin_records(&made)) {
		for (uint32_t i = 0; i < told->record_count; i++)
			if (told->node_array[i].name &&
			    told->node_array[i].gres_used &&
			    is_idle(&told->node_array[i]))
				put_gres(&made, &told->node_array[i]);
		tell_records(out, &made, "gres", NOTHING,
			     &GRES_FIELDS(AS_NAME)[1]);
	} else {
		tell_failure(out, ENOMEM);
	}
	slurm_free_node_info_msg(told);
}

bool answer_nodes(FILE *out, char *words[], size_t count)
{
	if (!strcmp(words[0], "nodes") && count == 2)
		answer_all(out, words[1]);
	else if (!strcmp(words[0], "node"))
		answer_some(out, words + 1, count - 1);
	else if (!strcmp(words[0], "gres") && count == 1)
		answer_gres(out);
	else
		return false;
	return true;
}
