package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/operator/instance/flavor"
)

// Clone replaces all data of this server by those of the source, and waits for that as long as ctx lets it.
// Without an error the server has begun to end itself, to be started again; only then CloneStatus tells
// whether the clone is complete. With an error the data may be gone.
func (s *Server) Clone(ctx context.Context, source Source) error {
	if len(source.Password) > flavor.MaxReplicationPassword {
		return fmt.Errorf("cloning: the password of %s has more than %d bytes", source.User, flavor.MaxReplicationPassword)
	}
	address := net.JoinHostPort(source.Host, strconv.Itoa(int(source.Port)))
	for _, v := range [][2]string{
		{"clone_valid_donor_list", source.Host + ":" + strconv.Itoa(int(source.Port))},
		{"clone_ssl_ca", source.CA},
		{"clone_ssl_cert", source.Cert},
		{"clone_ssl_key", source.Key},
	} {
		if err := s.short(ctx, "setting "+v[0], flavor.SetGlobal(v[0], flavor.Quote(v[1]))); err != nil {
			return err
		}
	}
	err := s.Execute(ctx, fmt.Sprintf("CLONE INSTANCE FROM %s@%s:%d IDENTIFIED BY %s REQUIRE SSL",
		flavor.Quote(source.User), flavor.Quote(source.Host), source.Port, flavor.Quote(source.Password)))
	switch {
	case err == nil, number(err) == errRestartFailed, ctx.Err() == nil && hungUp(err):
		return nil
	}
	return fmt.Errorf("cloning from %s: %w", address, err)
}

// hungUp tells whether the connection ended under the statement.
func hungUp(err error) bool {
	return errors.Is(err, driver.ErrInvalidConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// CloneStatus is how the last clone into this server ended.
type CloneStatus struct {
	// Completed tells that all data are there and in use.
	Completed bool
	// State is the server's word, Errno and Message why it failed.
	State   string
	Errno   int
	Message string
}

// CloneStatus reads how the last clone into this server ended; false when there was none.
func (s *Server) CloneStatus(ctx context.Context) (CloneStatus, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var c CloneStatus
	err := s.db.QueryRowContext(ctx, "SELECT STATE, ERROR_NO, ERROR_MESSAGE FROM performance_schema.clone_status").
		Scan(&c.State, &c.Errno, &c.Message)
	if errors.Is(err, sql.ErrNoRows) {
		return CloneStatus{}, false, nil
	}
	if err != nil {
		return CloneStatus{}, false, fmt.Errorf("reading the state of the clone: %w", err)
	}
	c.Completed = strings.EqualFold(c.State, "Completed") && c.Errno == 0
	return c, true, nil
}

// CloneProgress is how much of a clone is copied.
type CloneProgress struct {
	Percent int32 // of what is estimated, 0 to 100
	Bytes   int64
}

// CloneProgress reads how much of a clone is copied; false when none was begun.
func (s *Server) CloneProgress(ctx context.Context) (CloneProgress, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var stages, estimate, data int64
	err := s.db.QueryRowContext(ctx, `SELECT COUNT(*), COALESCE(SUM(GREATEST(ESTIMATE, DATA)), 0), COALESCE(SUM(DATA), 0)
 FROM performance_schema.clone_progress WHERE STAGE LIKE '%COPY'`).Scan(&stages, &estimate, &data)
	if err != nil {
		return CloneProgress{}, false, fmt.Errorf("reading the progress of the clone: %w", err)
	}
	if stages == 0 || estimate == 0 {
		return CloneProgress{}, false, nil
	}
	return CloneProgress{Percent: int32(100 * data / estimate), Bytes: data}, true, nil
}

// CloneDropped tells whether a clone that failed had begun to drop this server's data: then they are worthless.
func (s *Server) CloneDropped(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var begun int
	err := s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM performance_schema.clone_progress WHERE STAGE = 'DROP DATA' AND STATE <> 'Not Started'").Scan(&begun)
	if err != nil {
		return false, fmt.Errorf("reading the progress of the clone: %w", err)
	}
	return begun > 0, nil
}
