//go:build linux && (amd64 || arm64)

#include "textflag.h"

// As in golang.org/x/sys/unix: these functions are known to assembly, and otherwise
// to nobody who does not import them.

TEXT ·rawSyscall6(SB),NOSPLIT,$0-80
	JMP	syscall·RawSyscall6(SB)

TEXT ·syscall6(SB),NOSPLIT,$0-80
	JMP	syscall·Syscall6(SB)
