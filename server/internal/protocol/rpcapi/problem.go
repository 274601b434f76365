package rpcapi

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/firnid/firn/server/internal/service"
)

// A callError is why a call failed.
type callError struct {
	*service.Problem
	wrong []service.FieldError // fields of the request that are invalid
}

// GRPCStatus returns what gRPC sends to the client.
func (e *callError) GRPCStatus() *status.Status {
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: e.Kind.String(), Domain: "firn"}}
	if e.wrong != nil {
		bad := new(errdetails.BadRequest)
		for _, w := range e.wrong {
			bad.FieldViolations = append(bad.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: w.Field, Description: w.Text})
		}
		details = append(details, bad)
	}
	if e.Retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.Retry)})
	}
	st := status.New(e.Kind.Code(), e.Detail)
	if with, err := st.WithDetails(details...); err == nil {
		return with
	}
	return st
}

// invalid returns the error of a call with an invalid field, or one that is
// denied.
func invalid(field string, p *service.Problem) error {
	if p.Kind.Code() != codes.InvalidArgument {
		return &callError{Problem: p}
	}
	return &callError{p, []service.FieldError{{Field: field, Text: p.Detail}}}
}

// backendError returns what a client sees of an error of a Backend or its
// sources.
func (s *Server) backendError(ctx context.Context, err error) error {
	return s.callErrorOf(ctx, service.ProblemOf(err, s.front.RequestTimeout, isLate(err)))
}

// adminError is backendError for an error of a StoreAdmin, about the named
// sequencer.
func (s *Server) adminError(ctx context.Context, name string, err error) error {
	return s.callErrorOf(ctx, service.AdminProblem(name, err, s.front.RequestTimeout, isLate(err)))
}

func isLate(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// callErrorOf logs a failure of the server, and returns the error of the call.
func (s *Server) callErrorOf(ctx context.Context, f *service.Problem) error {
	if err := callOf(ctx).ctx.Err(); err != nil { // the client's: the server's limit is another context
		return status.FromContextError(err).Err()
	}
	if f.Cause != nil {
		method, _ := grpc.Method(ctx)
		s.front.Logger.Log(ctx, f.Level(), "call failed", "method", method, "error", f.Cause)
	}
	e := &callError{Problem: f}
	if c, ok := errors.AsType[*service.CreationError](f); ok {
		e.wrong = c.Wrong
	}
	return e
}

// kindOf returns the kind of a call's error. If the client's deadline passes,
// the client usually leaves before the server notices, so both are Cancelled.
// Another error without a kind comes from gRPC: the message is invalid.
func kindOf(err error) service.Kind {
	if err == nil {
		return service.NoProblem
	}
	if e, ok := errors.AsType[*callError](err); ok {
		return e.Kind
	}
	if c := statusOf(err).Code(); c == codes.Canceled || c == codes.DeadlineExceeded {
		return service.Cancelled
	}
	return service.BadParameter
}

// statusOf returns what gRPC sends of an error.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return status.FromContextError(err)
}

// withRequest adds the request ID to the details of an error.
func withRequest(err error, id string) error {
	if with, err := statusOf(err).WithDetails(&errdetails.RequestInfo{RequestId: id}); err == nil {
		return with.Err()
	}
	return err
}
