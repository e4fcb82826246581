// Package rounds keeps the agents' rounds and their time limits.
package rounds
