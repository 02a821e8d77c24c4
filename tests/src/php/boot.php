<?php
final class BootedOnce
{
    public static int $seen = 0;
}
BootedOnce::$seen++;
