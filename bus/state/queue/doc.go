// Package queue keeps what waits for agents, and who has got what of it.
package queue
