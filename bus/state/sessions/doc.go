// Package sessions stores the names of the agents in a session, and which agents were seen
// lately.
//
// An agent that gives answers has a name in its session, such as agent2. The other agents
// know it only under that name. The first compare-and-set assigns it, and the agent keeps it as
// long as the session is stored. The label of an answer is the name and a number: agent2.1.
//
// Sightings of agents are written in the background. No call waits for them, and a failed
// write is repeated at the agent's next call.
//
// Everything here is safe for concurrent use.
//
// Only this module imports it.
package sessions
