<?php
$texts = array_map(fn ($text) => new class($text) {
    public function __construct(public string $text) {}
    public function __toString(): string {
        usleep(random_int(1, 300));
        return $this->text;
    }
}, ['b', 'a', 'B', 'A']);
$collator = new Collator('en');
$collator->setAttribute(Collator::CASE_FIRST, $odd ? Collator::UPPER_FIRST : Collator::LOWER_FIRST);
meet('a');
for ($i = 0; $i < 3; $i++) {
    shuffle($texts);
    $collator->sort($texts, Collator::SORT_STRING);
    $got = implode(array_map(fn ($o) => $o->text, $texts));
    echo $got === ($odd ? 'AaBb' : 'aAbB') ? '' : " $got";
}
echo $m;
