<?php
if (true) {
    class Base__N__ {
        public function count(): int {
            return __N__;
        }
    }
}
if (true) {
    class Late__N__ extends ArrayObject {
        public function offsetGet($x) {
            return 'x';
        }
        public function getIterator() {
            return parent::getIterator();
        }
    }
}
