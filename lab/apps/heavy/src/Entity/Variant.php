<?php

namespace Heavy\Entity;

use Doctrine\Common\Collections\ArrayCollection;
use Doctrine\Common\Collections\Collection;
use Doctrine\ORM\Mapping as ORM;
use Symfony\Component\Serializer\Annotation\Groups;

#[ORM\Entity]
#[ORM\Table(name: 'heavy_variant')]
class Variant
{
    #[ORM\Id]
    #[ORM\Column(type: 'integer')]
    #[Groups(['shop'])]
    public int $id;

    #[ORM\ManyToOne(targetEntity: Product::class, inversedBy: 'variants')]
    public Product $product;

    #[ORM\ManyToOne(targetEntity: TaxCategory::class)]
    #[ORM\JoinColumn(name: 'tax_category_id')]
    public TaxCategory $taxCategory;

    #[ORM\Column(type: 'string')]
    #[Groups(['shop'])]
    public string $code;

    #[ORM\Column(type: 'integer')]
    #[Groups(['admin'])]
    public int $position;

    #[ORM\Column(type: 'integer', name: 'on_hand')]
    #[Groups(['admin'])]
    public int $onHand;

    /** @var Collection<int, VariantTranslation> */
    #[ORM\OneToMany(targetEntity: VariantTranslation::class, mappedBy: 'variant', indexBy: 'locale')]
    #[Groups(['shop'])]
    public Collection $translations;

    /** @var Collection<int, ChannelPrice> */
    #[ORM\OneToMany(targetEntity: ChannelPrice::class, mappedBy: 'variant', indexBy: 'channel')]
    public Collection $prices;

    // The visitor's price: computed by the pricing, not stored.
    #[Groups(['shop'])]
    public ?array $price = null;

    public function __construct()
    {
        $this->translations = new ArrayCollection();
        $this->prices = new ArrayCollection();
    }

    #[Groups(['shop'])]
    public function isInStock(): bool
    {
        return $this->onHand > 0;
    }
}
