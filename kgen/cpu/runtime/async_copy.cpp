#include "async_copy.h"

#include <cstring>

#include "group.h"
#include "group_calls.h"
#include "observe.h"

namespace kgen_cpu {

void Block::pipeline_copy(void* to, const void* from, size_t bytes, Site site) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        fault(site, current_, "__pipeline_memcpy_async copies 4, 8 or 16 bytes, not %zu", bytes);
    require_aligned(to, static_cast<unsigned>(bytes), site);
    require_aligned(from, static_cast<unsigned>(bytes), site);
    if (group_.owner(to, rank_) != rank_)
        fault(site, current_, "__pipeline_memcpy_async copies to the block's shared memory only");
    Copy copy = {to, from, bytes, site};
    copy.time = observing::pipeline_begins(copy);
    copies_[current_].pipeline.open.push_back(std::move(copy));
}

void Block::pipeline_wait(size_t pending) {
    std::deque<Batch>& batches = copies_[current_].pipeline.committed;
    for (; batches.size() > pending; batches.pop_front()) {
        for (const Copy& copy : batches.front()) {
            observing::pipeline_ends(copy);
            std::memcpy(copy.to, copy.from, copy.bytes);
        }
    }
}

void Block::require_bulk(const void* to, const void* from, uint32_t bytes, Site site) {
    constexpr unsigned UNIT = 16;
    require_aligned(to, UNIT, site);
    require_aligned(from, UNIT, site);
    if (bytes % UNIT == 0) return;
    fault(site, current_, "a bulk copy of %u bytes: it copies a multiple of %u", bytes, UNIT);
}

void Block::bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, Site site) {
    require_bulk(to, from, bytes, site);
    send({to, from, {}, bytes, index_, current_, site}, barrier, site);
}

void Block::bulk_store(void* to, const void* from, uint32_t bytes, Site site) {
    require_bulk(to, from, bytes, site);
    if (group_.owner(from, rank_) != rank_)
        fault(site, current_, "a bulk store reads the block's own shared memory only");
    Copy copy = {to, from, bytes, site};
    copy.time = observing::bulk_store_begins(copy);
    copies_[current_].bulk_stores.open.push_back(std::move(copy));
}

void Block::bulk_wait(size_t pending, bool is_read_only) {
    std::deque<Batch>& batches = copies_[current_].bulk_stores.committed;
    const size_t done = batches.size() - std::min(batches.size(), pending);
    if (done > 0) let_others_run();
    for (size_t i = 0; i < done; ++i) read_source(batches[i]);
    if (is_read_only) return;
    for (size_t i = 0; i < done; ++i, batches.pop_front()) write_target(batches.front());
}

void Block::read_source(Batch& batch) {
    for (Copy& copy : batch) {
        if (!copy.data.empty()) continue;
        observing::bulk_store_read(copy);
        const auto* from = static_cast<const unsigned char*>(copy.from);
        copy.data.assign(from, from + copy.bytes);
    }
}

void Block::write_target(const Batch& batch) {
    for (const Copy& copy : batch) {
        observing::bulk_store_written(copy);
        std::memcpy(copy.to, copy.data.data(), copy.bytes);
    }
}

// The running thread returns. What it has read is still written; what it has not, a later block
// may overwrite first.
void Block::end_copies() {
    const auto found = copies_.find(current_);
    if (found == copies_.end()) return;
    Batches& stores = found->second.bulk_stores;
    stores.commit();
    for (const Batch& batch : stores.committed) {
        for (const Copy& copy : batch) {
            if (!copy.data.empty()) continue;
            fault(copy.site, current_,
                  "returns while its bulk store may still read shared memory: "
                  "nobody waited for that (cp_async_bulk_wait_group_read)");
        }
        write_target(batch);
    }
}

void pipeline_copy(void* to, const void* from, size_t bytes, Site site) {
    Block::current()->pipeline_copy(to, from, bytes, site);
}
void pipeline_commit() { Block::current()->copies().pipeline.commit(); }
void pipeline_wait(size_t pending, Site) { Block::current()->pipeline_wait(pending); }
void bulk_load(void* to, const void* from, uint32_t bytes, uint64_t* barrier, Site site) {
    Block::current()->bulk_load(to, from, bytes, barrier, site);
}
void bulk_store(void* to, const void* from, uint32_t bytes, Site site) {
    Block::current()->bulk_store(to, from, bytes, site);
}
void bulk_commit() { Block::current()->copies().bulk_stores.commit(); }
void bulk_wait(size_t pending, bool is_read_only, Site) {
    Block::current()->bulk_wait(pending, is_read_only);
}
void proxy_fence() { observing::proxy_fence(); }

}  // namespace kgen_cpu
