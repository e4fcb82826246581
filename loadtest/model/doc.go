// Package model calculates the needs of a fabric that is larger than the measured one:
// CPU, memory, connections, writes and network traffic for any number of agents, from the
// cost of one. It measures nothing. It also lists the limits of one fabric in the order in
// which they are reached.
package model
