// A blocking HTTP client for tests that can misbehave: sends raw bytes, reads little or nothing,
// leaves at any time. Talks to 127.0.0.1 only. Not for production code.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::server {

struct TestResponse {
  int status = 0;    // 0: the connection ended before a whole head
  std::string head;  // status line and headers
  std::string body;  // without chunk framing
  bool complete = false;

  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  bool has_header(const std::string& line) const { return head.find(line) != std::string::npos; }
};

class TestClient {
 public:
  static constexpr std::chrono::milliseconds kPatience{20'000};

  // receive_buffer: of the kernel in bytes; 0: the system's choice.
  explicit TestClient(uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  // False if the server closed the connection before it took everything.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  bool post(std::string_view path, std::string_view body, std::string_view headers = "") {
    return send("POST " + std::string(path) +
                " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n" +
                std::string(headers) + "Content-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + std::string(body));
  }
  bool get(std::string_view path) {
    return send("GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n\r\n");
  }

  // Reads once into the buffer; false at the end of the connection or when patience is over.
  bool fill(std::chrono::milliseconds patience = kPatience) {
    pollfd ready{fd_, POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return false;
    char bytes[16384];
    const auto n = ::recv(fd_, bytes, sizeof bytes, 0);
    if (n <= 0) {
      closed_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(n));
    return true;
  }

  // Reads until `text` has come; false if it does not.
  bool read_until(std::string_view text) {
    while (buffer_.find(text) == std::string::npos) {
      if (!fill()) return false;
    }
    return true;
  }

  // True once the server has closed the connection; what it sent before is dropped.
  bool wait_closed(std::chrono::milliseconds patience = kPatience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!closed_ && std::chrono::steady_clock::now() < end) {
      fill(std::chrono::milliseconds(50));
      buffer_.clear();
    }
    return closed_;
  }

  // The next response of the connection. head_only: of a HEAD request.
  TestResponse read_response(bool head_only = false) {
    TestResponse response;
    if (!read_until("\r\n\r\n")) return response;
    response.head = take(buffer_.find("\r\n\r\n") + 4);
    response.status = std::atoi(response.head.substr(9, 3).c_str());
    if (head_only || response.status == 204) {
      response.complete = true;
    } else if (response.has_header("Transfer-Encoding: chunked")) {
      response.complete = read_chunks(response.body);
    } else if (const auto at = response.head.find("Content-Length: "); at != std::string::npos) {
      const auto size = static_cast<size_t>(std::atol(response.head.c_str() + at + 16));
      while (buffer_.size() < size && fill()) {
      }
      response.complete = buffer_.size() >= size;
      response.body = take(std::min(size, buffer_.size()));
    } else {
      while (fill()) {
      }
      response.body = take(buffer_.size());
      response.complete = closed_;
    }
    return response;
  }

 private:
  std::string take(size_t size) {
    std::string bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }

  bool read_chunks(std::string& body) {
    while (read_until("\r\n")) {
      const auto size = static_cast<size_t>(std::strtoul(buffer_.c_str(), nullptr, 16));
      take(buffer_.find("\r\n") + 2);
      while (buffer_.size() < size + 2) {
        if (!fill()) return false;
      }
      body += take(size);
      take(2);
      if (size == 0) return true;
    }
    return false;
  }

  int fd_ = -1;
  bool connected_ = false;
  bool closed_ = false;
  std::string buffer_;
};

}  // namespace sluice::server
