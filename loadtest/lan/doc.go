// Package lan gives processes of one machine a machine each, as far as networks
// go: network namespaces that a bridge joins, any of which can be cut off from any
// other, in one direction or both. What is sent then is lost on the way, silently,
// as with a switch that fails: no connection hears of it.
//
// Nothing of that touches the machine's own network. The program runs itself again
// in a network of its own (alone.go), makes the others from there (lan.go), and all
// of it is gone with the processes. It takes Linux, and root or user namespaces, and
// the command ip of iproute2; [Possible] says what is missing.
//
// All addresses are of 127.0.0.0/8: nobody but these processes can reach them.
package lan
