/*
 * What the readers of --auto-resume= and --elastic= have in common: pieces of a
 * text, and what is wrong with one.
 */
#ifndef STEWARD_PIECE_H
#define STEWARD_PIECE_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of a text, not ended by a NUL. */
struct piece {
	const char *at;
	size_t len;
};

/* What is wrong with a text. */
struct word_fault {
	const char *word; /* in the text */
	int len;	  /* of the word, cut for printing */
	const char *why;
};

/* Cut the piece at its first separator: what is in front of it is returned,
 * *rest is what follows; without one, all of it and nothing. */
struct piece piece_cut(struct piece piece, char separator, struct piece *rest);

/* -1: no whole number of at most six digits. */
long piece_whole(struct piece value);

/* False; *fault (may be NULL) says what is wrong with the word. */
bool word_refuse(struct word_fault *fault, struct piece word, const char *why);

#endif
