// Package sessions keeps who is who among the agents of a session, and which
// agents were seen lately.
//
// An agent that gives answers has a name in its session, such as agent2, by
// which the others know it, and nothing else. It is given once, by whoever is
// first, in a compare-and-set, and stays the agent's as long as the session is
// known. Answers are called by the name and a number: agent2.1.
//
// Who was seen is written in the background: what an agent waits for never
// depends on it, and what can not be written is written at the next call.
package sessions
