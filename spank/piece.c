#include "piece.h"

#include <string.h>

#define FAULT_LEN_MAX 64

struct piece piece_cut(struct piece piece, char separator, struct piece *rest)
{
	const char *found = memchr(piece.at, separator, piece.len);
	size_t len = found ? (size_t) (found - piece.at) : piece.len;

	*rest = (struct piece){piece.at + len + !!found,
			       piece.len - len - !!found};
	return (struct piece){piece.at, len};
}

long piece_whole(struct piece value)
{
	long number = 0;

	if (!value.len || value.len > 6)
		return -1;
	for (size_t i = 0; i < value.len; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -1;
		number = number * 10 + (value.at[i] - '0');
	}
	return number;
}

bool word_refuse(struct word_fault *fault, struct piece word, const char *why)
{
	if (fault)
		*fault = (struct word_fault){
			.word = word.at,
			.len = (int) (word.len < FAULT_LEN_MAX ? word.len
							       : FAULT_LEN_MAX),
			.why = why};
	return false;
}
