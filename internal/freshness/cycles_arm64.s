//go:build !purego

#include "textflag.h"

// func Cycles() uint64
//
// Without an ISB, as for RDTSC.
TEXT ·Cycles(SB), NOSPLIT, $0-8
	MRS  CNTVCT_EL0, R0
	MOVD R0, ret+0(FP)
	RET
