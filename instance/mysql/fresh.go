package mysql

import (
	"context"
	"fmt"
)

// As is the same server as another account, with the session variables as the server has them.
func (s *Server) As(user, password string) *Server {
	return Open(Options{
		Socket:        s.o.Socket,
		User:          user,
		Password:      func() (string, error) { return password, nil },
		Timeout:       s.o.Timeout,
		ServerSession: true,
		Log:           s.o.Log,
	})
}

// ForgetBinaryLogs deletes all binary logs and empties the executed set of a server that is new. It does
// nothing when that set is empty.
func (s *Server) ForgetBinaryLogs(ctx context.Context) error {
	m, err := s.Read(ctx)
	if err != nil || m.Executed.IsEmpty() {
		return err
	}
	dialect, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	return s.short(ctx, "emptying the binary log", dialect.ResetBinaryLogs)
}

// PartialRevokes tells whether the server takes the name of a database in a GRANT literally, not as a pattern.
func (s *Server) PartialRevokes(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var on bool
	if err := s.db.QueryRowContext(ctx, "SELECT @@global.partial_revokes").Scan(&on); err != nil {
		return false, fmt.Errorf("reading partial_revokes: %w", err)
	}
	return on, nil
}
