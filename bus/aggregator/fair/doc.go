// Package fair bounds what one agent takes of a broker, so that one that runs away
// leaves the others theirs: how many events a second, how many at once before that
// counts, and how many calls under way.
//
// It is asked at every event. So it allocates nothing, agents that are asked about at
// the same time hardly ever meet at one lock, and a [Table] takes the same memory for
// any number of agents: those that it has no room for are forgotten, first those of
// which nothing would have to be remembered, and then those that come next to that.
// Whoever makes up names therefore makes nobody forgotten who is over a limit, unless
// he is over more of them himself.
package fair
