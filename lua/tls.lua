-- TLS for the engine, by OpenSSL 3 or 1.1. Certificates aren't verified: a load is sent to a server
-- that its owner named, and a lab's certificate is its own.

local ffi = require("ffi")

local M = {}

ffi.cdef([[
   void *TLS_client_method(void);
   void *SSL_CTX_new(void *method);
   uint64_t SSL_CTX_set_options(void *context, uint64_t options);
   void *SSL_new(void *context);
   void SSL_free(void *ssl);
   int SSL_set_fd(void *ssl, int fd);
   long SSL_ctrl(void *ssl, int command, long number, const char *text);
   int SSL_connect(void *ssl);
   int SSL_read(void *ssl, char *data, int length);
   int SSL_write(void *ssl, const char *data, int length);
   int SSL_get_error(void *ssl, int result);
   int SSL_CTX_set_alpn_protos(void *context, const char *names, unsigned int length);
   long SSL_CTX_ctrl(void *context, int command, long number, void *);
   void SSL_get0_alpn_selected(void *ssl, const char **name, unsigned int *length);
   void SSL_set_shutdown(void *ssl, int mode);
   void *SSL_get1_session(void *ssl);
   int SSL_set_session(void *ssl, void *session);
   int SSL_session_reused(void *ssl);
   void SSL_SESSION_free(void *session);
   void ERR_clear_error(void);
]])

local ssl, context, name
local sessions -- of each connection by its number, where they are resumed; nil where not

local WANT_READ, WANT_WRITE, SYSCALL, ZERO_RETURN = 2, 3, 5, 6

-- What a call that failed wants: nil to wait for the next event, else the error's kind. The queue of
-- errors is cleared before each call, or SSL_get_error would find an older one.
local function problem(handle, result)
   local number = ssl.SSL_get_error(handle, result)
   if number == WANT_READ or number == WANT_WRITE then return nil end
   if number == ZERO_RETURN then return "closed" end
   if number == SYSCALL then return "read" end
   return "tls"
end

-- Why there is no TLS, nil where there is. With `protocols`, each with its length before it, the server
-- may choose one of them.
function M.prepare(server_name, resume, protocols)
   for _, library in ipairs({ "libssl.so.3", "libssl.so.1.1" }) do
      local found, loaded = pcall(ffi.load, library)
      if found then ssl = loaded end
      if found then break end
   end
   if not ssl then return "https needs OpenSSL's libssl.so.3 or libssl.so.1.1 (Debian: libssl3)" end
   context = ssl.SSL_CTX_new(ssl.TLS_client_method())
   ssl.SSL_CTX_set_options(context, 0x80ULL) -- SSL_OP_IGNORE_UNEXPECTED_EOF: an EOF, no error
   if protocols then
      local SET_MODE, PARTIAL_WRITE, MOVING_WRITE_BUFFER = 33, 1, 2
      ssl.SSL_CTX_set_alpn_protos(context, protocols, #protocols)
      ssl.SSL_CTX_ctrl(context, SET_MODE, PARTIAL_WRITE + MOVING_WRITE_BUFFER, nil)
   end
   name = server_name
   sessions = resume and {} or nil
end

-- A handle for the connection of number `i`, whose socket is open.
function M.new(i, fd)
   local SET_TLSEXT_HOSTNAME = 55
   local handle = ssl.SSL_new(context)
   ssl.SSL_set_fd(handle, fd)
   ssl.SSL_ctrl(handle, SET_TLSEXT_HOSTNAME, 0, name)
   local session = sessions and sessions[i]
   if session then ssl.SSL_set_session(handle, session) end
   return handle
end

-- true when it is done, nil when it goes on, else the error's kind.
function M.handshake(handle)
   ssl.ERR_clear_error()
   local result = ssl.SSL_connect(handle)
   if result == 1 then return true end
   return problem(handle, result)
end

function M.resumed(handle) return ssl.SSL_session_reused(handle) == 1 end

-- The protocol that the server chose of those that it was offered, "" for none.
function M.protocol(handle)
   local chosen, length = ffi.new("const char *[1]"), ffi.new("unsigned int[1]")
   ssl.SSL_get0_alpn_selected(handle, chosen, length)
   return chosen[0] ~= nil and ffi.string(chosen[0], length[0]) or ""
end

-- How many bytes were sent, and the error's kind.
function M.write(handle, data, length)
   ssl.ERR_clear_error()
   local sent = ssl.SSL_write(handle, data, length)
   if sent > 0 then return sent end
   return 0, problem(handle, sent)
end

function M.read(handle, data, length)
   ssl.ERR_clear_error()
   local got = ssl.SSL_read(handle, data, length)
   if got > 0 then return got end
   return 0, problem(handle, got)
end

-- Free it, and keep its session. A connection that wasn't shut down would make its session unusable,
-- so it is said to have been; nothing is sent.
function M.free(i, handle)
   local SENT_AND_RECEIVED = 3
   ssl.SSL_set_shutdown(handle, SENT_AND_RECEIVED)
   if sessions then
      if sessions[i] then ssl.SSL_SESSION_free(sessions[i]) end
      local session = ssl.SSL_get1_session(handle)
      sessions[i] = session ~= nil and session or nil
   end
   ssl.SSL_free(handle)
end

return M
