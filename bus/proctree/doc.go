// Package proctree ends a process and the processes that it started, also those in process
// groups and sessions of their own. On Linux it finds them as descendants, or by a mark in
// their environment. A process that lost its parent and cleared its environment escapes.
// On other systems it ends only the process and its group.
package proctree

import "crypto/rand"

// MarkName is the variable by which the processes that a process has started are
// known, in whatever session and below whatever parent.
const MarkName = "HOOKFABRIC_PROCESS"

// NewMark is a line of the environment of one process, by which [Kill] knows what it starts.
func NewMark() string { return MarkName + "=" + rand.Text() }
