// Package rounds keeps the agents' rounds and their time limits.
//
// There is one key per agent, and every change of it is a compare-and-set: so
// each denial counts once, and a round is warned once, however many brokers are
// told of it at once. A round is named by the revision of its start, which no
// other round ever has; what comes late and is about a round before it changes
// nothing.
//
// No time is one of this machine's clock. A round began, and its agent was
// warned, when the server stored that; how long ago that is, is told by what the
// server's clock shows now, as far as that can be known from here.
//
// All rounds are mirrored in memory, because every tool call looks at one.
package rounds
