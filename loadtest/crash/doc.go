// Package crash checks that no message is lost when a process dies. It runs a broker,
// hookworkers, shims with many agents each, a daemon (`agentshim serve`), and producers of
// messages. It kills them at random with SIGKILL, and starts them again.
//
// Each process logs what it does, and package audit compares the logs with the list of kills.
//
// shim.go runs the agents, daemon.go the daemon, field.go starts all processes and logs each
// kill, run.go is the run, and report.go the result.
package crash
