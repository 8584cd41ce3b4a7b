//! The protocol's errors, each with a sentence for a person.
//! Source: <https://agentclientprotocol.com/protocol/v1/overview>, section on errors.

use agent_client_protocol_schema::v1::{Error, ErrorCode};

fn error(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// The line is no JSON.
pub fn parse_error(message: impl Into<String>) -> Error {
    error(ErrorCode::ParseError, message)
}

/// The message is no request, or comes at a wrong time.
pub fn invalid_request(message: impl Into<String>) -> Error {
    error(ErrorCode::InvalidRequest, message)
}

/// There is no such method.
pub fn method_not_found(message: impl Into<String>) -> Error {
    error(ErrorCode::MethodNotFound, message)
}

/// The caller's parameters are wrong.
pub fn invalid_params(message: impl Into<String>) -> Error {
    error(ErrorCode::InvalidParams, message)
}

/// Something failed that is not the caller's fault.
pub fn internal(message: impl Into<String>) -> Error {
    error(ErrorCode::InternalError, message)
}

/// There is no such session.
pub fn unknown_session(id: &str) -> Error {
    let data = Error::session_not_found(id.to_owned()).data;
    error(ErrorCode::ResourceNotFound, format!("there is no session {id}")).data(data)
}
