// The bounded cache of GEMM plans. Needs no GPU library, so it is tested on any machine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace blaslt {

// All that a plan depends on. Types and operations are the library's own numbers.
struct PlanKey {
    int32_t op_a, op_b;
    int64_t m, n, k;
    int64_t lda, ldb, ldc;
    int32_t type_a, type_b, type_c, compute;
    int32_t batch;
    bool    pointer_array;
    int64_t stride_a, stride_b, stride_c;
    // Each pointer's alignment in bytes, at most 16: kernels with wide loads need it.
    uint8_t align_a, align_b, align_c;

    auto tie() const {
        return std::tie(op_a, op_b, m, n, k, lda, ldb, ldc, type_a, type_b, type_c, compute, batch,
                        pointer_array, stride_a, stride_b, stride_c, align_a, align_b, align_c);
    }
    bool operator==(const PlanKey & other) const { return tie() == other.tie(); }
};

struct PlanKeyHash {
    size_t operator()(const PlanKey & key) const {
        uint64_t hash = 0xcbf29ce484222325;   // FNV-1a over the fields
        std::apply([&](const auto &... field) { ((hash = (hash ^ uint64_t(field)) * 0x100000001b3), ...); },
                   key.tie());
        return size_t(hash ^ (hash >> 32));
    }
};

// Largest power of two up to 16 that divides an address or a distance in bytes.
constexpr uint8_t alignment(uint64_t bytes) {
    return uint8_t((bytes | 16) & (~(bytes | 16) + 1));
}

// Least recently used entries go first. Not locked: each belongs to one stream, which is.
template <class Key, class Value, class Hash>
class LruCache {
  public:
    explicit LruCache(size_t capacity) : capacity_(capacity) {}

    // The entry, now the most recently used; null if there is none.
    Value * find(const Key & key) {
        const auto found = index_.find(key);
        if (found == index_.end()) return nullptr;
        order_.splice(order_.begin(), order_, found->second);
        return &found->second->second;
    }

    // Adds an entry that find() did not have; drops the oldest when full. Returns the entry and
    // how many were dropped.
    std::pair<Value *, size_t> insert(const Key & key, Value value) {
        size_t dropped = 0;
        while (!order_.empty() && order_.size() >= capacity_) {
            index_.erase(order_.back().first);
            order_.pop_back();
            dropped++;
        }
        order_.emplace_front(key, std::move(value));
        index_[key] = order_.begin();
        return { &order_.front().second, dropped };
    }

    size_t size() const { return order_.size(); }

  private:
    using Entry = std::pair<Key, Value>;
    size_t capacity_;
    std::list<Entry> order_;
    std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

} // namespace blaslt
