<?php
$objects = array_map(fn ($text) => new class($text) {
    public function __construct(public string $text) {}
    public function __toString(): string {
        usleep(random_int(1, 300));
        return $this->text;
    }
}, ['c', 'a', 'b', 'd']);
$other = [3, 1, 2, 4];
meet('a');
array_multisort($objects, $odd ? SORT_DESC : SORT_ASC, $odd ? SORT_STRING : SORT_STRING | SORT_FLAG_CASE, $other);
echo implode($other) === ($odd ? '4321' : '1234') ? '' : implode($other), $m;
