// Package chaos has a fleet of agents under load while its fabric goes wrong in
// ways that are drawn at random: brokers, workers, their server and the agents'
// own processes are killed and stopped, and the network between them is slow,
// silent or cut. Nothing of that excuses a wrong answer: what is checked is what
// a fleet without faults is checked for, apart from answers that did not come.
//
// draw.go draws the faults, felt.go says how long each of them was felt, and
// run.go runs it.
package chaos
