// Package sessions keeps who is who among the agents of a session.
package sessions
