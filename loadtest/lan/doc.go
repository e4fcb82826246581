// Package lan gives processes of one machine separate hosts in network namespaces that a
// bridge connects. Any host can be cut off from any other, in one direction or both.
// Packets are then dropped silently, as by a failing switch, and connections stay open.
//
// The machine's own network does not change. The program runs itself again in its own
// network namespace (alone.go), creates the others from there (lan.go), and they disappear
// with the processes. This needs Linux, root or user namespaces, and the command ip of
// iproute2; [Possible] returns what is missing.
//
// All addresses are in 127.0.0.0/8: only these processes can reach them.
package lan
