// Package proctree ends a process and the processes that it started, also those in process
// groups and sessions of their own. On Linux it finds them as descendants, or by a mark in
// their environment. A process that lost its parent and cleared its environment escapes.
// On other systems it ends only the process and its group.
//
// Only this module imports it.
package proctree

import "crypto/rand"

// MarkName is the environment variable that identifies the processes that a process started, in any
// session and below any parent.
const MarkName = "HOOKFABRIC_PROCESS"

// NewMark returns an environment variable for one process, by which [Kill] finds what that process
// starts.
func NewMark() string { return MarkName + "=" + rand.Text() }
